"""The entries of one flush that somebody wants, in the forms of the connections that get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpwsn.broker.readers.feeds import Form
from hpwsn.broker.readers.log_pages import Encode, Stretch


class EncodedEntries:
    """Entries that are encoded once for each encoding and framed once for each form."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._stretches = stretches
        self._data: dict[Encode, list[bytes]] = {}
        self._frames: dict[Form, Mapping[int, bytes]] = {}
        self._some: dict[Form, dict[int, bytes]] = {}

    def frames(self, form: Form) -> Mapping[int, bytes]:
        """The frames of a form by offset."""
        found = self._frames.get(form)
        if found is None:
            data = self._data.get(form.encode)
            if data is None:
                data = self._data[form.encode] = form.encode(self._stretches)
            offsets = [offset for each in self._stretches for offset in each.offsets]
            found = self._frames[form] = dict(zip(offsets, map(form.frame, offsets, data), strict=True))
        return found

    def some(self, form: Form, offsets: Sequence[int]) -> list[bytes]:
        """The frames at some offsets; others are not encoded unless `frames` was called."""
        if form.encode in self._data:
            everything = self.frames(form)
            return [everything[offset] for offset in offsets]
        known = self._some.setdefault(form, {})
        missing = {offset for offset in offsets if offset not in known}
        if missing:
            parts = (each.select([offset in missing for offset in each.offsets]) for each in self._stretches)
            found = [each for each in parts if each is not None]
            places = [offset for each in found for offset in each.offsets]
            known.update(zip(places, map(form.frame, places, form.encode(found)), strict=True))
        return [known[offset] for offset in offsets]


def select_all(stretches: Sequence[Stretch], wanted: Sequence[bool]) -> list[Stretch]:
    """The wanted entries of stretches."""
    if all(wanted):
        return list(stretches)
    found, start = [], 0
    for stretch in stretches:
        end = start + len(stretch.offsets)
        part = stretch.select(wanted[start:end])
        start = end
        if part is not None:
            found.append(part)
    return found

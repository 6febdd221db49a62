"""How a reader of JSON gets payloads: as `data`, raw, or cut.

`data` is the payload as a JSON object. Raw, an event has the stored XML as the text `raw` instead. With a
cut, an event whose stored XML has more bytes has the beginning of it as `raw`, `truncated` and its `size`
in bytes; its `data` is null. Readers with equal views share the encoded events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hpwsn.broker.readers.log_pages import Encode, Stretch
from hpwsn.door.rest.events.event_pages import EventPages, encode_head
from hpwsn.door.rest.events.long_connection import Forms
from hpwsn.notification import LargeRun

MOST_VIEWS = 64
"""Views whose forms are kept for other connections."""


@dataclass(frozen=True, slots=True)
class PayloadView:
    """What a reader asks for; `cut` is in bytes, None for all."""

    raw: bool = False
    cut: int | None = None


class PayloadViews:
    """The encodings and forms of all views of one door."""

    def __init__(self, pages: EventPages) -> None:
        self._pages = pages
        self._plain = Forms(pages.json_events)
        self._forms: dict[PayloadView, Forms] = {}

    def forms(self, view: PayloadView) -> Forms:
        """The forms in which long connections carry events."""
        if view == PayloadView():
            return self._plain
        known = self._forms.get(view)
        if known is None:
            if len(self._forms) >= MOST_VIEWS:
                self._forms.clear()
            known = self._forms[view] = Forms(_Encoder(self._pages, view).encode)
        return known

    def encoding(self, view: PayloadView) -> Encode:
        """The encoding of the events of a poll."""
        return self.forms(view).socket.encode


class _Encoder:
    """Encodes events for one view that is not the plain one. Threads may share it."""

    def __init__(self, pages: EventPages, view: PayloadView) -> None:
        self._pages = pages
        self._view = view

    def encode(self, stretches: Sequence[Stretch]) -> list[bytes]:
        """Each entry on one line."""
        view = self._view
        if not view.raw and all(each.run.content_size <= (view.cut or 0) for each in stretches):
            return self._pages.json_events(stretches)
        return [event for each in stretches for event in self._encode(each)]

    def _encode(self, stretch: Stretch) -> Iterator[bytes]:
        head = encode_head(stretch.run)
        for at, (offset, (payload, size)) in enumerate(
            zip(stretch.offsets, self._beginnings(stretch), strict=True)
        ):
            if not self._view.raw and len(payload) == size:
                one = stretch.select([each == at for each in range(len(stretch.offsets))])
                assert one is not None
                yield from self._pages.json_events((one,))
                continue
            text = json.dumps(payload.decode(errors="ignore"), ensure_ascii=False).encode()
            rest = b"" if len(payload) == size else b', "truncated": true, "size": %d' % size
            data = b"" if self._view.raw else b'"data": null, '
            yield b'{"offset": %d, %b, %b"raw": %b%b}' % (offset, head, data, text, rest)

    def _beginnings(self, stretch: Stretch) -> Iterator[tuple[bytes, int]]:
        """Each payload up to the cut, and its whole size."""
        run, cut = stretch.run, self._view.cut
        if isinstance(run, LargeRun):
            # Its payloads would be a copy of all bytes.
            start, end = len(run.before), run.end
            yield run.content[start : end if cut is None else min(end, start + cut)], end - start
            return
        for payload in stretch.payloads:
            yield payload[:cut], len(payload)

"""Conversion of many items by learned shapes: one regular expression cuts the values out of all items.

An item is an event in one form; a shape is its fields, in order, and the kind of each value. A Cut finds the
values of all items of a shape and puts them into a template, so that most of the work is done in C. Items
that no cut matches take the slow way, which is the reference: a cut must give an equal event.

To compile a cut takes as long as hundreds of conversions, and a publisher may never repeat a shape. So a
shape is learned when it occurs again, and a credit limits the total cost: slow items earn it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Literal, NamedTuple, Protocol

MOST_CUTS = 4
MOST_FIELDS = 60
LONGEST = 4096
"""Maximum bytes of an item whose shape is learned."""
MOST_KEYS = 256
"""Shapes that were seen and not learned, which are remembered."""
PIECE = 128 << 10
"""Bytes that one call of an expression works on: it holds the interpreter lock (GIL), about a millisecond."""
PRICE = 300
"""Credit for each field of a cut; a slow item earns 1."""
MOST_CREDIT = 100 * PRICE

Kind = Literal["text", "literal", "any"]
"""Text that needs no escapes and no mark, a number or boolean, or any value: the last costs most."""
Key = tuple[str | bytes, ...]
"""The names of the fields, in order."""
Converter = Callable[[bytes], bytes]


class Field(NamedTuple):
    """A field of a shape; `lead` is what the form has before its name."""

    name: str
    kind: Kind
    lead: bytes = b""


class Cut:
    """The compiled conversion of one shape; the expression has a group for each value and matches an item
    with its terminator.

    `order` has the number of the group for each place in the template; `converters` are by group.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        expression: bytes,
        template: bytes,
        order: Sequence[int],
        converters: Mapping[int, Converter],
    ) -> None:
        self.fields = tuple(fields)
        # With at least two groups, `findall` returns tuples. These two are empty and always there.
        compiled = re.compile(expression + b"()()")
        self.find = compiled.findall
        self.match = compiled.match
        self._fill = (template + b"%b%b").__mod__
        groups = (*order, compiled.groups - 2, compiled.groups - 1)
        self._arrange = None if groups == tuple(range(compiled.groups)) else itemgetter(*groups)
        self._converters = converters

    def render_one(self, values: tuple[bytes, ...]) -> bytes:
        """One item in the other form, from its values."""
        return self.render((values,))[0] if self._converters or self._arrange else self._fill(values)

    def render(self, found: Iterable[tuple[bytes, ...]]) -> list[bytes]:
        """Each item in the other form, from its values."""
        if self._converters:
            columns: list[Iterable[bytes]] = list(zip(*found, strict=True))
            for group, convert in self._converters.items():
                columns[group] = map(convert, columns[group])
            found = zip(*columns, strict=True)
        if self._arrange is not None:
            found = map(self._arrange, found)
        return list(map(self._fill, found))


class Form(Protocol):
    """How items of one form become items of another."""

    terminator: bytes
    """Ends each item."""

    def convert_slowly(self, item: bytes) -> tuple[bytes, Key | None]:
        """An item in the other form, and the names of its fields; None if it has no shape to learn."""

    def read_shape(self, item: bytes) -> list[Field] | None:
        """The fields of an item; None if it is not flat."""

    def compile_cut(self, fields: Sequence[Field]) -> Cut:
        """The conversion of all items of a shape."""


class LearnedShapes:
    """The cuts for one form. Threads may share it: a race costs a cut, never a wrong result."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._cuts: tuple[Cut, ...] = ()
        """The last used first."""
        self._seen: dict[Key, int] = {}
        self._credit = MOST_CREDIT

    def convert(self, items: bytes, count: int) -> list[bytes]:
        """All `count` items, each with its terminator, in the other form."""
        if len(items) <= PIECE:
            return self._convert_piece(items, count)
        converted: list[bytes] = []
        start, terminator = 0, self._form.terminator
        while start < len(items):
            end = items.find(terminator, start + PIECE) + 1 or len(items)
            piece = items[start:end]
            converted += self._convert_piece(piece, piece.count(terminator))
            start = end
        return converted

    def _convert_piece(self, items: bytes, count: int) -> list[bytes]:
        cuts = self._cuts
        if cuts and cuts[0].match(items) is not None:
            found = cuts[0].find(items)
            if len(found) == count:
                return cuts[0].render(found)
        return self._convert_each(items)

    def _convert_each(self, items: bytes) -> list[bytes]:
        converted: list[bytes] = []
        at, terminator = 0, self._form.terminator
        while at < len(items):
            for cut in self._cuts:
                match = cut.match(items, at)
                if match is not None:
                    converted.append(cut.render_one(match.groups()))
                    at = match.end()
                    self._use(cut)
                    break
            else:
                end = items.index(terminator, at)
                item, at = items[at:end], end + 1
                made, key = self._form.convert_slowly(item)
                converted.append(made)
                self._note(item, key)
        return converted

    def _use(self, cut: Cut) -> None:
        if self._cuts[0] is not cut:
            self._cuts = (cut, *[each for each in self._cuts if each is not cut])

    def _note(self, item: bytes, key: Key | None) -> None:
        """Learn the shape of a slow item, if it has occurred before and the credit is high enough."""
        self._credit = min(self._credit + 1, MOST_CREDIT)
        if key is None or len(key) > MOST_FIELDS or len(item) > LONGEST:
            return
        if len(self._seen) >= MOST_KEYS:
            self._seen.clear()
        times = self._seen[key] = self._seen.get(key, 0) + 1
        # Learn the second, fourth, eighth... slow item of the same fields.
        if times == 1 or times & (times - 1) or self._credit < PRICE * len(key):
            return
        fields = self._form.read_shape(item)
        if fields is not None:
            self._learn(fields)

    def _learn(self, fields: list[Field]) -> None:
        others = []
        for cut in self._cuts:
            widened = _widen(cut.fields, fields)
            if widened is None:
                others.append(cut)
            else:
                fields = widened
        if all(tuple(fields) != cut.fields for cut in self._cuts):
            self._credit -= PRICE * len(fields)
            self._cuts = (self._form.compile_cut(fields), *others[: MOST_CUTS - 1])


def _widen(known: Sequence[Field], new: Sequence[Field]) -> list[Field] | None:
    """The shape of both; None if they differ in more than the kinds of their values."""
    if [each._replace(kind="any") for each in known] != [each._replace(kind="any") for each in new]:
        return None
    return [
        field if field.kind == other.kind else field._replace(kind="any")
        for field, other in zip(known, new, strict=True)
    ]

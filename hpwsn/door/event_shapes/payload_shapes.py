"""Payloads of the log as JSON, or as rows of values: many at once by their shape (learned_shapes).

An `hp:event` without a learned shape is cut by one expression. All other payloads are parsed, which is
the reference. Rows are for programs that read columns; hpwsn.door.rest.events.event_pages describes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpwsn.door.event_shapes.learned_shapes import Converter, Cut, Field, Key, Kind
from hpwsn.door.event_shapes.leaves import (
    CLOSE,
    LITERAL,
    NOT_LITERAL,
    NULL,
    OPEN,
    STRING_MARK,
    TEXT,
    Leaf,
    any_element,
    cell,
    event_leaves,
    leaf_cell,
    leaf_json,
    nested_cell,
    nested_elements,
    nested_json,
    quoted,
    skipped,
    start_tag,
    write_json,
)
from hpwsn.notification import END
from hpwsn_client.wsn.formats.json_events import decode_event

SEPARATOR = b"\x1f"
"""Between the values of a row."""
WHOLE = "@data"
"""The column with the whole event as JSON."""

_is_literal = re.compile(rb">" + LITERAL + rb"<").match
_is_text = re.compile(rb"(?:" + STRING_MARK + rb">|>" + NOT_LITERAL % b"<" + rb")" + TEXT + rb"<").match
# Spaces around a number are not part of it, and in a row nothing tells a number from text.
_CELL = rb"(?:%b>|>)(?! )([^<&\x00-\x1f]*+)(?<! )" % STRING_MARK
_is_cell = re.compile(_CELL + b"<").match


class JsonForm:
    """Each payload becomes a JSON object on one line."""

    terminator = END

    def convert_slowly(self, item: bytes) -> tuple[bytes, Key | None]:
        """An event of any shape."""
        leaves = event_leaves(item)
        if leaves is None:
            return write_json(decode_event(item)).encode(), None
        fields = [
            leaf.quoted + (nested_json(leaf.rest) if leaf.nested else leaf_json(leaf.rest)) for leaf in leaves
        ]
        return b"{" + b", ".join(fields) + b"}", tuple([leaf.name for leaf in leaves])

    def read_shape(self, item: bytes) -> list[Field] | None:
        """The fields of an event that is not deeply nested."""
        leaves = event_leaves(item)
        return None if leaves is None else [Field(leaf.name, _json_kind(leaf)) for leaf in leaves]

    def compile_cut(self, fields: Sequence[Field]) -> Cut:
        """The conversion to JSON."""
        expression, places = [re.escape(OPEN)], []
        for field in fields:
            opening, closing = start_tag(field.name)
            expression.append(re.escape(opening) + _json_value(field.kind, opening, closing))
            quote = b'"' if field.kind == "text" else b""
            places.append(quoted(field.name).replace(b"%", b"%%") + quote + b"%b" + quote)
        expression += (re.escape(CLOSE), END)
        converters = {at: _JSON[field.kind] for at, field in enumerate(fields) if field.kind in _JSON}
        template = b"{" + b", ".join(places) + b"}"
        return Cut(fields, b"".join(expression), template, range(len(fields)), converters)


_JSON: dict[Kind, Converter] = {"any": leaf_json, "nested": nested_json}
_CELLS: dict[Kind, Converter] = {"any": leaf_cell, "nested": nested_cell}


def _json_kind(leaf: Leaf) -> Kind:
    if leaf.nested:
        return "nested"
    if _is_literal(leaf.rest):
        return "literal"
    return "text" if _is_text(leaf.rest) else "any"


def _json_value(kind: Kind, opening: bytes, closing: bytes) -> bytes:
    """An expression with one group, for an element after its name."""
    if kind == "nested":
        return nested_elements(opening)
    if kind == "any":
        return any_element(closing)
    if kind == "literal":
        return b">(" + LITERAL + b")" + re.escape(closing)
    opened = rb"(?:>%b|%b>)" % (NOT_LITERAL % b"<", STRING_MARK)
    return opened + b"(" + TEXT + b")" + re.escape(closing)


class RowsForm:
    """Each payload becomes the values of some columns; WHOLE is not among these."""

    terminator = END

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)

    def convert_slowly(self, item: bytes) -> tuple[bytes, Key | None]:
        """The row of an event of any shape."""
        leaves = event_leaves(item)
        if leaves is None:
            event = decode_event(item)
            return SEPARATOR.join([cell(event.get(column)) for column in self._columns]), None
        rests = {leaf.name: leaf for leaf in leaves}
        return SEPARATOR.join([_cell(rests.get(each)) for each in self._columns]), tuple(rests)

    def read_shape(self, item: bytes) -> list[Field] | None:
        """The fields of an event; those that are not columns may have any scalar value."""
        leaves = event_leaves(item)
        if leaves is None:
            return None
        return [Field(leaf.name, self._kind(leaf)) for leaf in leaves]

    def _kind(self, leaf: Leaf) -> Kind:
        if leaf.nested:
            return "nested"
        return "text" if leaf.name not in self._columns or _is_cell(leaf.rest) else "any"

    def compile_cut(self, fields: Sequence[Field]) -> Cut:
        """The conversion to rows."""
        expression = [re.escape(OPEN)]
        groups: dict[str, int] = {}
        converters: dict[int, Converter] = {}
        for field in fields:
            opening, closing = start_tag(field.name)
            wanted = field.name in self._columns
            if wanted and field.kind in _CELLS:
                converters[len(groups)] = _CELLS[field.kind]
            if wanted:
                groups[field.name] = len(groups)
            expression.append(re.escape(opening) + _cell_value(field.kind, wanted, opening, closing))
        expression += (re.escape(CLOSE), END)
        template = SEPARATOR.join([b"%b" if each in groups else NULL for each in self._columns])
        order = [groups[each] for each in self._columns if each in groups]
        return Cut(fields, b"".join(expression), template, order, converters)


def _cell(leaf: Leaf | None) -> bytes:
    if leaf is None:
        return NULL
    return nested_cell(leaf.rest) if leaf.nested else leaf_cell(leaf.rest)


def _cell_value(kind: Kind, wanted: bool, opening: bytes, closing: bytes) -> bytes:
    """An expression for an element after its name, with a group if its value is wanted."""
    if kind == "nested":
        found = nested_elements(opening)
        return found if wanted else b"(?:" + found.removeprefix(b"(")
    if not wanted:
        return skipped(closing)
    return any_element(closing) if kind == "any" else _CELL + re.escape(closing)

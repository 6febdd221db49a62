"""The fields of flat events, as JSON and as elements of XML: what each form allows, and single conversions.

The narrow expressions match only values that are equal in both forms. The conversions take every value that
the expressions for any value match; they are the same as those of hpwsn_client.wsn.formats.json_events.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import NamedTuple

from hpwsn_client.wsn.formats.json_events import (
    EVENT_CLOSE,
    EVENT_OPEN,
    JsonValue,
    encode_scalar,
    parse_literal,
    tags_of,
)

OPEN, CLOSE = EVENT_OPEN.encode(), EVENT_CLOSE.encode()
NULL = b"\x1a"
"""Null, or a missing field, in a row of values."""

# These numbers are finite, and short enough for both forms.
LITERAL = rb"(?:-?(?:0|[1-9][0-9]{0,200}+)(?:\.[0-9]{1,200}+)?+(?:[eE][+-]?[0-9]{1,2}+)?+|true|false)"
DECIMAL = (
    rb"(?:-?(?:0|[1-9][0-9]{0,17}+)\.(?:0(?![0-9])|[0-9]{1,17}+(?<!0))|-?[1-9][0-9]{0,200}+|0|true|false)"
)
"""A literal that Python would write with the same value, and without an exponent."""
NOT_LITERAL = rb"(?! *+(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+|true|false) *+%b)"
"""Looks ahead: the text up to a byte is not one that would need a mark as text."""
TEXT = rb'[^<>&"\\\x00-\x1f]*+'
"""Text without a character that either form would escape."""
JSON_SCALAR = rb'(?:"(?:[^"\\\x00-\x1f]|\\["\\/bfnrtu])*+"|-?[0-9][0-9.eE+-]{0,400}+|true|false|null)'

STRING_MARK, NULL_MARK, ARRAY_MARK = b' hp:type="string"', b' hp:type="null"', b' hp:array="true"'
_SKIPPED = rb"(?=[ >])[^<]*+(?:%b)?+"
_NAME = rb"(?![!?])[^\s<>/:&\"'=]++|hp:field name=\"[^\"<&]*+\""
_REST = rb"(?: hp:type=\"string\")?+>[^<\r]*+</[^\s<>]++>| hp:type=\"null\"/>"
_INNER = rb"<(%b)(%b)" % (_NAME, _REST)
_LEAVES = rb">(?:<(?:%b)(?:%b))++</[^\s<>]++>" % (_NAME, _REST)
_EMPTY = rb" hp:type=\"(?:array|object)\"/>"
# After its name, an element may also have leaves, nothing, or the mark of an array of one.
_NESTED = rb"%b(?:%b|%b|%b)|%b|%b" % (ARRAY_MARK, _REST, _EMPTY, _LEAVES, _EMPTY, _LEAVES)
_leaves = re.compile(rb"<(%b)(?:(%b)|(%b))" % (_NAME, _REST, _NESTED)).findall
_inner_leaves = re.compile(_INNER).findall
_is_literal = re.compile(rb">(%b)<" % LITERAL).match
_entity = re.compile(r"&(?:#x([0-9a-fA-F]+)|#([0-9]+)|(lt|gt|amp|quot|apos));").sub
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_new = tuple.__new__
write_json = json.JSONEncoder(ensure_ascii=False).encode
"""JSON text on one line; one encoder for all, since to make one costs more than to use it."""
_BREAKS = str.maketrans("\n\r", "\x1d\x1c")


class Leaf(NamedTuple):
    """A field of an event: its name, the name with a colon as JSON has it, its element after the name.

    A nested field is an array or an object of leaves. `rest` has all elements of an array.
    """

    name: str
    quoted: bytes
    rest: bytes
    nested: bool


def event_leaves(payload: bytes) -> list[Leaf] | None:
    """The fields of an event that is not deeply nested; None for another payload."""
    if not payload.startswith(OPEN) or not payload.endswith(CLOSE):
        return None
    found = _leaves(payload, len(OPEN))
    # Each leaf begins with one byte more, "<". With other content in between, the lengths differ.
    inner = len(payload) - len(OPEN) - len(CLOSE)
    if sum([len(tag) + len(rest) + len(nested) + 1 for tag, rest, nested in found]) != inner:
        return None
    leaves = [_new(Leaf, (*_field(tag), rest or nested, not rest)) for tag, rest, nested in found]
    if len({leaf.name for leaf in leaves}) < len(leaves):
        leaves = _merge(leaves, [tag for tag, _, _ in found])
    return leaves if len({leaf.name for leaf in leaves}) == len(leaves) else None


def _merge(leaves: list[Leaf], tags: list[bytes]) -> list[Leaf]:
    """Make one leaf of neighbours with the same tag."""
    merged: list[Leaf] = []
    last = b""
    for leaf, tag in zip(leaves, tags, strict=True):
        if tag == last:
            rest = b"%b<%b%b" % (merged[-1].rest, tag, leaf.rest)
            merged[-1] = merged[-1]._replace(rest=rest, nested=True)
        else:
            merged.append(leaf)
        last = tag
    return merged


def _field(tag: bytes) -> tuple[str, bytes]:
    text = tag.decode()
    if tag.isalnum():
        return text, b'"%b": ' % tag
    name = text[len('hp:field name="') : -1] if text.startswith("hp:") else text
    return name, quoted(name)


def quoted(name: str) -> bytes:
    """The name of a field with a colon, as JSON has it."""
    return encode_basestring(name).encode() + b": "


def start_tag(name: str) -> tuple[bytes, bytes]:
    """The start tag of a field up to its name, and its end tag."""
    opening, closing = tags_of(name)
    return opening.encode(), closing.encode()


def skipped(closing: bytes) -> bytes:
    """An expression for the rest of an element after its name, whatever its value."""
    return _SKIPPED % re.escape(closing)


def any_element(closing: bytes) -> bytes:
    """An expression for the rest of a leaf element after its name, of which `leaf_value` reads the value."""
    return rb"((?:%b)?+>[^<\r]*+%b|%b/>)" % (STRING_MARK, re.escape(closing), NULL_MARK)


def nested_elements(opening: bytes) -> bytes:
    """An expression for the elements of a field after the first name; `nested_json` reads the value."""
    element = rb"(?:%b|%b)" % (_REST, _NESTED)
    return rb"((?=[ >])%b(?:%b(?=[ >])%b)*+)" % (element, re.escape(opening), element)


def leaf_value(rest: bytes) -> JsonValue:
    """The value of a leaf, from its element after the name."""
    if rest.startswith(NULL_MARK):
        return None
    text = rest[rest.index(b">") + 1 : rest.index(b"<")].decode()
    if "&" in text:
        text = _entity(_character, text)
    return parse_literal(text) if rest.startswith(b">") else text


def _character(found: re.Match[str]) -> str:
    hexadecimal, decimal, name = found.groups()
    return _ENTITIES[name] if name else chr(int(hexadecimal, 16) if hexadecimal else int(decimal))


def leaf_json(rest: bytes) -> bytes:
    """The JSON text of a leaf's value, from its element after the name."""
    literal = _is_literal(rest)
    if literal is not None:
        return literal[1]
    value = leaf_value(rest)
    return (encode_basestring(value) if isinstance(value, str) else write_json(value)).encode()


def leaf_cell(rest: bytes) -> bytes:
    """A leaf's value as a row of values has it, from its element after the name."""
    literal = _is_literal(rest)
    return cell(leaf_value(rest)) if literal is None else literal[1]


def nested_json(rest: bytes) -> bytes:
    """The JSON text of a nested field's value, from its elements after the first name."""
    values = [_element_json(leaf or nested) for _, leaf, nested in _leaves(b"<a" + rest)]
    if len(values) == 1 and not rest.startswith(ARRAY_MARK):
        return values[0]
    return b"[" + b", ".join(values) + b"]"


def _element_json(rest: bytes) -> bytes:
    rest = rest.removeprefix(ARRAY_MARK)
    if rest.startswith(b' hp:type="array"'):
        return b"[]"
    if rest.startswith(b' hp:type="object"'):
        return b"{}"
    if not rest.startswith(b"><") or rest.startswith(b"></"):
        return leaf_json(rest)
    members: dict[bytes, list[bytes]] = {}
    for tag, inner in _inner_leaves(rest, 1):
        members.setdefault(_field(tag)[1], []).append(leaf_json(inner))
    fields = [
        name + (values[0] if len(values) == 1 else b"[" + b", ".join(values) + b"]")
        for name, values in members.items()
    ]
    return b"{" + b", ".join(fields) + b"}"


def nested_cell(rest: bytes) -> bytes:
    """A nested field's value as a row of values has it, from its elements after the first name."""
    (_, leaf, _), *more = _leaves(b"<a" + rest)
    return leaf_cell(rest) if leaf and not more else nested_json(rest)


def cell(value: JsonValue) -> bytes:
    """A value as a row of values has it."""
    if value is None:
        return NULL
    return (value.translate(_BREAKS) if isinstance(value, str) else write_json(value)).encode()


def element_rest(value: bool | int | float | str | None, closing: bytes) -> bytes:
    """A field's element after its name."""
    return encode_scalar(value, closing.decode()).encode()

"""Namespaces in scope, as bytes: what a slice of a document needs declared to mean the same elsewhere.

Owns how declarations in the text of a start tag are read without a tree. Knows only plain ones, whose URI
needs no escape; for others the answer is None, and the caller has to use a tree. The text must be from a
document that libxml2 has found well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

NAME = rb"[A-Za-z_][\w.-]*+"
"""A name without a colon, of ASCII letters: others are left to the full parser."""
# Not `?+`: in Python 3.11.2, which Debian 12 has, a possessive group that fails may spoil the match.
PREFIX = rb"(?:[A-Za-z_][\w.-]*+:)?"
ATTRIBUTES = rb"""(?:\s++[^\s<>"'=/]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+\s*+"""

MOST = 32
"""Namespaces in scope: with more of them each message would cost too much, and a tree has to be used."""
REMEMBERED = 256
"""Bytes of the attributes of one tag, of which the meaning is remembered."""

_NONE: Mapping[bytes, bytes] = MappingProxyType({})
# Each takes the whole of an attribute, so that what looks like one inside of a value is none.
_each_attribute = re.compile(rb"""\s++([^\s<>"'=/]++)\s*+=\s*+(?:"([^"<]*+)"|'([^'<]*+)')""").findall
_is_plain = re.compile(rb"[A-Za-z0-9:/.#?_~%+,;=@-]*+").fullmatch
_is_name = re.compile(NAME).fullmatch
_start_tag = re.compile(rb"(<[^\s<>/]++)(%b)/?>" % ATTRIBUTES).match


class _Binding(NamedTuple):
    prefix: bytes
    colon: bytes
    declaration: bytes
    mentioned: re.Pattern[bytes]


class Scope:
    """The namespaces at one place of a document; `bindings` as lxml's nsmap has them."""

    __slots__ = ("_default", "_prefixed", "_raw", "bindings", "declarations")

    def __init__(self, raw: dict[bytes, bytes]) -> None:
        self._raw = raw
        self.bindings: dict[str | None, str] = {
            prefix.decode() or None: uri.decode() for prefix, uri in raw.items() if uri
        }
        default = raw.get(b"")
        self._default = b' xmlns="%b"' % default if default else b""
        self._prefixed = tuple(_binding(prefix, uri) for prefix, uri in raw.items() if prefix)
        self.declarations = b"".join((self._default, *(b.declaration for b in self._prefixed)))
        """All of it, as attributes of a start tag."""

    def inside(self, attributes: bytes) -> Scope | None:
        """The scope within a start tag of these attributes; None if they declare too much, or not plainly."""
        if b"xmlns" not in attributes:
            return self
        found = read_declarations(attributes)
        if found is None or len(self._raw) + len(found) > MOST:
            return None
        return Scope({**self._raw, **found})

    def namespace(self, prefix: bytes, attributes: bytes = b"") -> str | None:
        """What the prefix, with its colon or empty, of a start tag with these attributes stands for."""
        found = read_declarations(attributes)
        if found is None:
            return None
        uri = found.get(prefix[:-1])
        return self.bindings.get(prefix[:-1].decode() or None) if uri is None else uri.decode()

    def complete(self, element: bytes) -> bytes | None:
        """An element of this scope with what it may use of it declared; None where that is not plain.

        As in encode_element, a prefix is left out where nothing within, not even text, has it before a colon.
        """
        wanted = self._mentioned(element)
        if not wanted and not self._default:
            return element
        tag = _start_tag(element)
        own = None if tag is None else read_declarations(tag[2])
        if tag is None or own is None:
            return None
        added = b"".join([b.declaration for b in wanted if b.prefix not in own])
        default = b"" if b"" in own else self._default
        return b"".join((tag[1], added, default, element[tag.end(1) :]))

    def is_unused(self, elements: bytes) -> bool:
        """Whether nothing of it is for any of these elements: they are complete as they are."""
        if self._default or (b"&" in elements and b"&#" in elements):
            return False
        for each in self._prefixed:
            if each.colon in elements and each.mentioned.search(elements):
                return False
        return True

    def _mentioned(self, element: bytes) -> Sequence[_Binding]:
        if b"&" in element and b"&#" in element:
            return self._prefixed  # any of them may be spelled in numbers
        return [b for b in self._prefixed if b.colon in element and b.mentioned.search(element)]


EMPTY = Scope({})


def read_declarations(attributes: bytes) -> Mapping[bytes, bytes] | None:
    """The namespaces that a start tag declares, the default one under ""; None where one is not plain."""
    if b"xmlns" not in attributes:
        return _NONE
    return _read_known(attributes) if len(attributes) <= REMEMBERED else _read(attributes)


def _read(attributes: bytes) -> Mapping[bytes, bytes] | None:
    declared: dict[bytes, bytes] = {}
    for name, uri in read_attributes(attributes):
        before, _, prefix = name.partition(b":")
        if before != b"xmlns":
            continue
        unusual = prefix and (not uri or prefix.startswith(b"xml") or not _is_name(prefix))
        if unusual or not _is_plain(uri):
            return None
        declared[prefix] = uri
    return declared


_read_known = lru_cache(512)(_read)


def read_attributes(attributes: bytes) -> list[tuple[bytes, bytes]]:
    """Names and values, as they are written, of attributes that ATTRIBUTES has matched."""
    return [(name, double or single) for name, double, single in _each_attribute(attributes)]


@lru_cache(512)
def _binding(prefix: bytes, uri: bytes) -> _Binding:
    colon = prefix + b":"
    # What is looked for stands first, since a search for plain bytes is many times faster.
    mentioned = re.compile(rb"%b(?<![\w.\x80-\xff-]%b)" % (re.escape(colon), re.escape(colon)))
    return _Binding(prefix, colon, b' xmlns:%b="%b"' % (prefix, uri), mentioned)

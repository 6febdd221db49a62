"""Namespaces in scope, as bytes: the declarations that a slice of a document needs to be self-contained.

It reads declarations from the text of a start tag, without an XML tree. Only plain declarations are known,
whose URI needs no escape; for others the result is None, and the caller must use a tree. The text must be
from a document that libxml2 has found well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

NAME = rb"[A-Za-z_][\w.-]*+"
"""A name without a colon, in ASCII; other names are left to the full parser."""
# Not `?+`: in Python 3.11.2 (Debian 12), a failed possessive group may give a wrong match.
PREFIX = rb"(?:[A-Za-z_][\w.-]*+:)?"
ATTRIBUTES = rb"""(?:\s++[^\s<>"'=/]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+\s*+"""

MOST = 32
"""Maximum number of namespaces in scope; with more of them a tree is faster."""
REMEMBERED = 256
"""Maximum bytes of a tag's attributes whose declarations are cached."""

_NONE: Mapping[bytes, bytes] = MappingProxyType({})
# The pattern matches whole attributes, so that attribute-like text inside a value is not matched.
_each_attribute = re.compile(rb"""\s++([^\s<>"'=/]++)\s*+=\s*+(?:"([^"<]*+)"|'([^'<]*+)')""").findall
_is_plain = re.compile(rb"[A-Za-z0-9:/.#?_~%+,;=@-]*+").fullmatch
_is_name = re.compile(NAME).fullmatch
_start_tag = re.compile(rb"(<[^\s<>/]++)(%b)/?>" % ATTRIBUTES).match


class _Binding(NamedTuple):
    prefix: bytes
    colon: bytes
    declaration: bytes
    mentioned: re.Pattern[bytes]


class CompleteTag(NamedTuple):
    """The beginning of a start tag up to its name, with declarations, and the bytes that it replaces."""

    length: int
    written: bytes


class Scope:
    """The namespaces at one position of a document; `bindings` is like lxml's nsmap."""

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
        """All declarations, as attributes of a start tag."""

    def inside(self, attributes: bytes) -> Scope | None:
        """The scope inside a start tag with these attributes; None if they are too many or not plain."""
        if b"xmlns" not in attributes:
            return self
        found = read_declarations(attributes)
        if found is None or len(self._raw) + len(found) > MOST:
            return None
        return Scope({**self._raw, **found})

    def namespace(self, prefix: bytes, attributes: bytes = b"") -> str | None:
        """The namespace of a prefix (with its colon, or empty) in a start tag with these attributes."""
        found = read_declarations(attributes)
        if found is None:
            return None
        uri = found.get(prefix[:-1])
        return self.bindings.get(prefix[:-1].decode() or None) if uri is None else uri.decode()

    def complete(self, element: bytes) -> bytes | None:
        """The element with the declarations that it may use; None if its own are not plain.

        As in encode_element, a prefix is declared only if it occurs before a colon, in tags or in text.
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

    def complete_tag(self, beginning: bytes, windows: Callable[[], Iterable[bytes]]) -> CompleteTag | None:
        """The start tag of an element with the declarations that the element may use; None if not plain.

        `beginning` has the whole tag, and `windows` give all of the element, in overlapping pieces.
        """
        tag = _start_tag(beginning)
        own = None if tag is None else read_declarations(tag[2])
        if tag is None or own is None:
            return None
        wanted: dict[bytes, _Binding] = {}
        for window in windows() if self._prefixed else ():
            wanted |= {binding.prefix: binding for binding in self._mentioned(window)}
        added = b"".join([b.declaration for b in wanted.values() if b.prefix not in own])
        default = b"" if b"" in own else self._default
        return CompleteTag(tag.end(1), b"".join((tag[1], added, default)))

    def is_unused(self, elements: bytes) -> bool:
        """Whether these elements use no namespace of this scope, so that they are self-contained."""
        if self._default or (b"&" in elements and b"&#" in elements):
            return False
        for each in self._prefixed:
            if each.colon in elements and each.mentioned.search(elements):
                return False
        return True

    def _mentioned(self, element: bytes) -> Sequence[_Binding]:
        if b"&" in element and b"&#" in element:
            return self._prefixed  # a character reference may spell any prefix
        return [b for b in self._prefixed if b.colon in element and b.mentioned.search(element)]


EMPTY = Scope({})


def read_declarations(attributes: bytes) -> Mapping[bytes, bytes] | None:
    """The namespaces that a start tag declares, the default one as ""; None if one is not plain."""
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
    # The literal comes first, since a search for plain bytes is many times faster.
    mentioned = re.compile(rb"%b(?<![\w.\x80-\xff-]%b)" % (re.escape(colon), re.escape(colon)))
    return _Binding(prefix, colon, b' xmlns:%b="%b"' % (prefix, uri), mentioned)

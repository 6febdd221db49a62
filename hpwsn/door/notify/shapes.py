"""Shapes of payloads: a payload that differs from a well-formed one only in plain text is well-formed too.

A shape is an element without its text and its attribute values. These may be any plain characters; tags,
namespaces and `xml:` attributes may not change. So a match with a known shape gives the same answer as
libxml2, much faster. A payload without a known shape is parsed by libxml2.

To learn a shape is expensive, and a sender may never repeat one. So a shape is learned only for a repeated
element name, further shapes of a name are learned at growing intervals, and a credit limits the total cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hpwsn.notification import END

LONGEST = 2048
"""Maximum bytes of an element whose shape is learned."""
MOST_TAGS = 64
MOST_NAMES = 512
VARIANTS = 4
"""Maximum number of shapes for one element name."""
LONGEST_EXPRESSION = 8192
"""Maximum bytes of the regular expression for one name; compiled, it takes about ten times as many."""
PRICE = 128
"""The credit that a shape costs, and each further kilobyte of an expression; a parsed element earns 1."""
MOST_CREDIT = 16 * PRICE

_name = re.compile(rb"<[^\s/>]++").match
_tags = re.compile(rb"""(<(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+>)([^<]*+)""").findall
# The pattern matches whole attributes, so that attribute-like text inside a value is not matched.
_attributes = re.compile(rb"""(\s([^\s<>"'=/]++)\s*+=\s*+)(?:"[^"<]*+"|'[^'<]*+')""").finditer
_TEXT = rb"[^<>\x00-\x08\x0b\x0c\x0e-\x1f]*+"
_VALUE = rb"[^<>\x00-\x08\x0b\x0c\x0e-\x1f\"']*+"
_ENTITIES = (b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;")


class Shapes:
    """Learned shapes by element name; `check` parses an element alone before its shape is learned.

    Until then it was parsed in a batch, where lxml reports only the last error.
    """

    def __init__(self, check: Callable[[bytes], None]) -> None:
        self._check = check
        self._shapes: dict[bytes, list[bytes]] = {}
        self._fits: dict[bytes, Callable[[bytes], re.Match[bytes] | None]] = {}
        self._misses: dict[bytes, int] = {}
        self._credit = MOST_CREDIT

    def fit(self, elements: bytes) -> bool:
        """Whether all elements, each followed by END, have a known shape of the first element's name."""
        name = _name(elements)
        fits = self._fits.get(name[0]) if name is not None else None
        return fits is not None and fits(elements) is not None and _is_plain(elements)

    def learn(self, element: bytes) -> None:
        """Learn the shape of an element that libxml2 has accepted, if that is worth its cost."""
        name = _name(element)
        if name is None or len(element) > LONGEST:
            return
        self._credit = min(self._credit + 1, MOST_CREDIT)
        if len(self._misses) >= MOST_NAMES:
            self._forget()
        misses = self._misses[name[0]] = self._misses.get(name[0], 0) + 1
        # Learn the second, fourth, eighth... element of a name that matches no shape.
        if misses > 1 and not misses & (misses - 1) and self._pay(PRICE):
            self._add(name[0], element)

    def _forget(self) -> None:
        self._misses.clear()
        self._shapes.clear()
        self._fits.clear()

    def _add(self, name: bytes, element: bytes) -> None:
        self._check(element)
        shape = _read_shape(element)
        known = self._shapes.get(name, [])
        if shape is None or shape in known:
            return
        known = [shape, *known][:VARIANTS]
        while len(expression := _row_of(known)) > LONGEST_EXPRESSION:
            known.pop()
        if known and self._pay(len(expression) // 1024 * PRICE):
            self._shapes[name] = known
            self._fits[name] = re.compile(expression).fullmatch

    def _pay(self, price: int) -> bool:
        """Subtract the price from the credit; False if the credit is too low."""
        if self._credit < price:
            return False
        self._credit -= price
        return True


def _row_of(known: list[bytes]) -> bytes:
    return rb"(?:(?:%b)%b)++" % (b"|".join(known), END)


def _read_shape(element: bytes) -> bytes | None:
    found = _tags(element)
    whole = b"".join([part for pair in found for part in pair])
    if len(found) > MOST_TAGS or whole != element or not element.endswith(b">"):
        return None
    return _TEXT.join(map(_read_tag, (tag for tag, _ in found)))


def _read_tag(tag: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    for attribute in _attributes(tag):
        if attribute[2].startswith(b"xml"):
            continue
        quote = tag[attribute.end() - 1 : attribute.end()]
        parts += (re.escape(tag[at : attribute.end(1)]), quote, _VALUE, quote)
        at = attribute.end()
    return b"".join((*parts, re.escape(tag[at:])))


def _is_plain(elements: bytes) -> bool:
    """Whether entities and non-ASCII characters, which the expressions do not check, are valid."""
    if b"&" in elements and elements.count(b"&") != sum(map(elements.count, _ENTITIES)):
        return False
    if elements.isascii():
        return True
    try:
        elements.decode()
    except UnicodeDecodeError:
        return False
    # U+FFFE and U+FFFF are not valid in XML; other characters with these first bytes go to libxml2 too.
    return b"\xef\xbf" not in elements

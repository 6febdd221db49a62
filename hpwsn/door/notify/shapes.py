"""Shapes of payloads: what was found well-formed once is so again if it differs in plain text only.

A shape is an element to the byte, but for its text and the values of its attributes. Both may be any plain
characters; tags, namespaces and whatever `xml:` says may not change. So a shape that libxml2 has passed says
nothing that libxml2 would not say, at a fraction of the price. What fits none is left to libxml2.

To learn a shape is dear, and a sender may never send the same one twice. So it takes a name that comes again,
later ones of a name are tried ever more seldom, and all together cost no more than a share of the parsing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hpwsn.notification import END

LONGEST = 2048
"""Bytes of an element whose shape is learned."""
MOST_TAGS = 64
MOST_NAMES = 512
VARIANTS = 4
"""Shapes of one name."""
LONGEST_EXPRESSION = 8192
"""Bytes of the expression for one name, which takes some ten times as many when it is compiled."""
PRICE = 128
"""What each begun kilobyte of an expression costs, counted in elements that libxml2 has to see."""
MOST_CREDIT = 16 * PRICE

_name = re.compile(rb"<[^\s/>]++").match
_tags = re.compile(rb"""(<(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+>)([^<]*+)""").findall
# Each takes the whole of an attribute, so that what looks like one inside of a value is none.
_attributes = re.compile(rb"""(\s([^\s<>"'=/]++)\s*+=\s*+)(?:"[^"<]*+"|'[^'<]*+')""").finditer
_TEXT = rb"[^<>\x00-\x08\x0b\x0c\x0e-\x1f]*+"
_VALUE = rb"[^<>\x00-\x08\x0b\x0c\x0e-\x1f\"']*+"
_ENTITIES = (b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;")


class Shapes:
    """Remembers shapes by the name of their element; `check` refuses one that is not well-formed by itself.

    It has been among others till then, where lxml heeds but the last trouble.
    """

    def __init__(self, check: Callable[[bytes], None]) -> None:
        self._check = check
        self._shapes: dict[bytes, list[bytes]] = {}
        self._fits: dict[bytes, Callable[[bytes], re.Match[bytes] | None]] = {}
        self._misses: dict[bytes, int] = {}
        self._credit = MOST_CREDIT

    def fit(self, elements: bytes) -> bool:
        """Whether each of these elements, with END behind it, is of a known shape of the first one's name."""
        name = _name(elements)
        fits = self._fits.get(name[0]) if name is not None else None
        return fits is not None and fits(elements) is not None and _is_plain(elements)

    def learn(self, element: bytes) -> None:
        """Know the shape of an element that libxml2 has passed, if that seems to be worth it."""
        name = _name(element)
        if name is None or len(element) > LONGEST:
            return
        self._credit = min(self._credit + 1, MOST_CREDIT)
        if len(self._misses) >= MOST_NAMES:
            self._forget()
        misses = self._misses[name[0]] = self._misses.get(name[0], 0) + 1
        # The second, the fourth, the eighth of a name that fits no shape.
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
        """Whether there is credit for it, which then is less."""
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
    """Whether what the expressions let through is legal: entities, and characters beyond ASCII."""
    if b"&" in elements and elements.count(b"&") != sum(map(elements.count, _ENTITIES)):
        return False
    if elements.isascii():
        return True
    try:
        elements.decode()
    except UnicodeDecodeError:
        return False
    # U+FFFE and U+FFFF are none of XML; these two bytes begin some others, too.
    return b"\xef\xbf" not in elements

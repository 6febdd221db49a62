"""The event of an ordinary payload, read off its bytes: an element that holds leaves without attributes.

Most events of sensors are so, and a tree of one costs more than all else that is done for it. The unusual
(attributes, nested elements, prefixes, references, CDATA, comments) gives None, and is the business of
hpwsn.matching.attributes, with which this agrees. Takes only what a parser has found well-formed before: each
`<` is then part of a leaf that was read, or of the two tags around them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hpwsn.matching.attributes import read_scalar
from hpwsn.matching.predicates import Event
from hpwsn_client.wsn.names import HPWSN

LONGEST = 8192
"""Bytes of a payload up to which it is tried: what is larger is seldom flat."""
LONGEST_HEAD = 256
"""Characters of a first tag that is looked at; a thousand of them are remembered."""

# A number as most are written is told apart at once; it has too few digits to be infinite.
_leaves = re.compile(r"<([^<>/:\s!?]+)>(?:([+-]?[0-9]{1,99}(?:\.[0-9]{0,99})?)|([^<&\r]*))</\1>").findall
_is_head = re.compile(
    r"<[^\s<>/&\"']+(?:\s+xmlns(?::[^\s=<>/&\"']+)?\s*=\s*(?:\"[^\"<&]*\"|'[^'<&]*'))*\s*"
).fullmatch
_OUR_EVENT = f'<hp:event xmlns:hp="{HPWSN}"'


def flat_event(payload: bytes) -> Event | None:
    """The event that a payload is, if that can be seen without a parser."""
    if len(payload) > LONGEST:
        return None
    text = payload.decode()
    found = _leaves(text)
    if text.count("<") != 2 * len(found) + 2 or not _is_plain(text[: text.find(">")]):
        return None
    values = {name: float(number) if number else read_scalar(other) for name, number, other in found}
    # A name that comes twice has two values.
    return values if len(values) == len(found) > 0 else None


@lru_cache(maxsize=1024)
def _is_plain(head: str) -> bool:
    """Whether the first tag says nothing but its name and declarations of namespaces that mean nothing."""
    if len(head) > LONGEST_HEAD or not _is_head(head):
        return False
    return HPWSN not in head or head == _OUR_EVENT

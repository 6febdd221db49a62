"""Subscribe messages read back from the journal, where a hundred thousand of them differ in little.

What is stored is what `encode_message` has written. Most requests differ in their address and, if they have
some, in their predicates alone: the message around these is parsed once for all that share it. A text that is
not plain ASCII, and whatever else the encoder can write, is left to the parser, which says what a message
means; what is read here is read there in the same way.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hpwsn_client.wsn.operations.filters import MAX_CHARACTERS, ContentFilter, Filter
from hpwsn_client.wsn.operations.messages import Subscribe, parse_message
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, WSA, WSNT
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml

KEPT = 4096
"""Messages around an address that are remembered."""
LONGEST = 2048
"""Bytes of one that is, so that together they cannot fill memory."""

_names = {b"wsnt": WSNT, b"wsa": WSA, b"predicates": DIALECT_PREDICATES}
# The optional group ends in `?`, not `?+`: in Python 3.11.2, which Debian 12 has, the groups within a
# possessive one that fails keep what they had matched.
_scan = re.compile(
    rb"""(
        <wsnt:Subscribe\ xmlns:wsnt="%(wsnt)b">
        <wsnt:ConsumerReference\ xmlns:wsnt="%(wsnt)b"\ xmlns:wsa="%(wsa)b"><wsa:Address>
    )
    ([!-%%'-;=?-~]++)
    (?:(
        </wsa:Address></wsnt:ConsumerReference><wsnt:Filter\ xmlns:wsnt="%(wsnt)b">
        (?:<wsnt:TopicExpression\ [^<]*+</wsnt:TopicExpression>)*+
        <wsnt:MessageContent\ xmlns:wsnt="%(wsnt)b"\ Dialect="%(predicates)b">
    )
    ((?:[ -%%'-;=?-~]++|&(?:lt|gt|amp);)++)
    (?=</wsnt:MessageContent></wsnt:Filter>))?
    (</.*+)"""
    % {name: re.escape(uri.encode()) for name, uri in _names.items()},
    re.VERBOSE | re.DOTALL,
).fullmatch

_SAMPLE = b"a"
"""Stands for an address, and for predicates, where only what is around them counts."""


def parse_stored_subscribe(data: bytes) -> Subscribe:
    """What parse_message gives; TypeError if that is no Subscribe."""
    found = _scan(data)
    if found is None:
        return _parse(data)
    head, address, middle, predicates, tail = found.groups(b"")
    if len(predicates) > MAX_CHARACTERS or len(data) - len(predicates) > LONGEST:
        return _parse(data)
    around = _around(head, middle, tail)
    consumer, wanted = around.consumer, around.filter
    if middle:
        wanted = Filter(wanted.topics, (ContentFilter(DIALECT_PREDICATES, _text(predicates).strip()),))
    return Subscribe(
        EndpointReference(
            address.decode(), consumer.reference_parameters, consumer.metadata, consumer.extensions
        ),
        wanted,
        around.termination,
        around.policy,
        around.extensions,
    )


@lru_cache(KEPT)
def _around(head: bytes, middle: bytes, tail: bytes) -> Subscribe:
    """The message with samples in it; `middle` leads from the address to the predicates, if any."""
    return _parse(b"".join((head, _SAMPLE, middle, _SAMPLE if middle else b"", tail)))


def _text(escaped: bytes) -> str:
    text = escaped.decode()
    if "&" not in text:
        return text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _parse(data: bytes) -> Subscribe:
    message = parse_message(parse_xml(data, STORED_LIMITS), STORED_LIMITS)
    if not isinstance(message, Subscribe):
        raise TypeError(f"the journal holds a {type(message).__name__} where a Subscribe must be")
    return message

"""A fast parser for stored Subscribe messages, since a restart may read a hundred thousand similar ones.

The journal has messages as `encode_message` wrote them. Most differ only in the consumer's address and in the
predicates, so the rest is parsed once and cached. All other messages, such as those with non-ASCII text, go
to the normal parser. Both parsers give equal results.
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
"""Number of cached messages."""
LONGEST = 2048
"""Maximum bytes of a cached message, which bounds the memory of the cache."""

_names = {b"wsnt": WSNT, b"wsa": WSA, b"predicates": DIALECT_PREDICATES}
# The optional group ends in `?`, not `?+`: in Python 3.11.2 (Debian 12), groups inside a failed possessive
# group keep their match.
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
"""A placeholder for the address and for the predicates in a cached message."""


def parse_stored_subscribe(data: bytes) -> Subscribe:
    """Parse like parse_message; TypeError if the message is not a Subscribe."""
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
    """The message with placeholders; `middle` is between the address and the predicates, if any."""
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

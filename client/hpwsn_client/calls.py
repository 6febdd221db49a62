"""One request and its answer: what every operation of a client is made of.

Owns that an answer is the one which was due; anything else is BadReply. Faults of the broker are raised as
they are.
"""

from __future__ import annotations

from typing import TypeVar

from .errors import BadReply
from .transport import Transport
from .wsn.addressing import EndpointReference
from .wsn.faults import SoapFault
from .wsn.messages import Message, encode_message, parse_message
from .wsn.xml import Limits

_Answer = TypeVar("_Answer")


class Caller:
    """Has one transport, and speaks to any endpoint by it."""

    def __init__(self, transport: Transport, broker: EndpointReference, limits: Limits) -> None:
        self._transport = transport
        self._broker = broker
        self._limits = limits

    async def _request(
        self, target: EndpointReference, action: str, request: Message, expected: type[_Answer]
    ) -> _Answer:
        body = await self._transport.call(target, action, encode_message(request))
        try:
            answer = None if body is None else parse_message(body, self._limits)
        except SoapFault as error:
            raise BadReply(
                f"{target.address} answered {action} badly: {error.reason}", target.address
            ) from None
        if not isinstance(answer, expected):
            found = "nothing" if body is None else body.tag
            raise BadReply(
                f"{target.address} answered {found!r} where {expected.__name__} was due", target.address
            )
        return answer

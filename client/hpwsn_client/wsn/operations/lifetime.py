"""The messages of WS-ResourceLifetime 1.2 (namespace rl-2).

They are Destroy, SetTerminationTime and their responses, TerminationNotification, and the properties
CurrentTime and TerminationTime. The module has no clock, so it does not check whether a time is in the past.
An invalid time raises UnableToSetTerminationTimeFault.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lxml import etree

from hpwsn_client.wsn.soap.faults import UnableToSetTerminationTimeFault
from hpwsn_client.wsn.soap.names import WSRF_RL, XSI, rl
from hpwsn_client.wsn.soap.sequence import children_of, is_nil, required, text_of
from hpwsn_client.wsn.soap.soap_faults import InvalidMessage
from hpwsn_client.wsn.soap.times import Duration, Termination, format_time, parse_time
from hpwsn_client.wsn.soap.wrong_namespace import namespace_hint
from hpwsn_client.wsn.soap.xml import escape
from hpwsn_client.wsn.topics.topic import shown

_TIME, _DURATION = rl("RequestedTerminationTime"), rl("RequestedLifetimeDuration")


@dataclass(frozen=True, slots=True)
class Destroy:
    """A request to destroy the resource immediately."""


@dataclass(frozen=True, slots=True)
class DestroyResponse:
    """The resource is destroyed."""


@dataclass(frozen=True, slots=True)
class SetTerminationTime:
    """A request for a new termination time; None means no expiry."""

    termination: Termination


@dataclass(frozen=True, slots=True)
class SetTerminationTimeResponse:
    """The granted termination time, None for no expiry, and the resource's current time."""

    termination_time: datetime | None
    current_time: datetime


LifetimeMessage = Destroy | DestroyResponse | SetTerminationTime | SetTerminationTimeResponse


def parse_set_termination_time(element: etree._Element) -> SetTerminationTime:
    """Parse a SetTerminationTime with a time or a duration."""
    children = children_of(element)
    if len(children) != 1 or children[0].tag not in (_TIME, _DURATION):
        raise InvalidMessage(
            f"{element.tag} must have either RequestedTerminationTime or RequestedLifetimeDuration"
            f"{namespace_hint(children, (_TIME, _DURATION))}"
        )
    return SetTerminationTime(_parse_requested(children[0]))


def encode_set_termination_time(message: SetTerminationTime) -> bytes:
    """Encode a SetTerminationTime."""
    form = "RequestedLifetimeDuration" if isinstance(message.termination, Duration) else _local(_TIME)
    return _encode("SetTerminationTime", encode_rl_time(form, message.termination))


def parse_set_termination_time_response(element: etree._Element) -> SetTerminationTimeResponse:
    """Parse a SetTerminationTimeResponse."""
    times = {child.tag: child for child in children_of(element)}
    now = required(element, times.get(rl("CurrentTime")), "CurrentTime", WSRF_RL)
    end = required(element, times.get(rl("NewTerminationTime")), "NewTerminationTime", WSRF_RL)
    return SetTerminationTimeResponse(None if is_nil(end) else _parse_date_time(end), _parse_date_time(now))


def encode_set_termination_time_response(message: SetTerminationTimeResponse) -> bytes:
    """Encode a SetTerminationTimeResponse."""
    return _encode(
        "SetTerminationTimeResponse",
        encode_rl_time("NewTerminationTime", message.termination_time),
        encode_rl_time("CurrentTime", message.current_time),
    )


def encode_rl_time(name: str, value: Termination) -> bytes:
    """Encode an element of WS-ResourceLifetime with a time; None is encoded as nil."""
    if value is None:
        return f'<wsrf-rl:{name} xmlns:wsrf-rl="{WSRF_RL}" xmlns:xsi="{XSI}" xsi:nil="true"/>'.encode()
    return f'<wsrf-rl:{name} xmlns:wsrf-rl="{WSRF_RL}">{format_time(value)}</wsrf-rl:{name}>'.encode()


def encode_termination_notification(time: datetime, reason: str) -> bytes:
    """Encode a TerminationNotification with the time and the reason."""
    reason_element = f"<wsrf-rl:TerminationReason>{escape(reason)}</wsrf-rl:TerminationReason>"
    return _encode("TerminationNotification", _plain_time("TerminationTime", time), reason_element.encode())


def _plain_time(name: str, time: datetime) -> bytes:
    return f"<wsrf-rl:{name}>{format_time(time)}</wsrf-rl:{name}>".encode()


def _encode(name: str, *parts: bytes) -> bytes:
    inside = b"".join(parts).decode()
    return f'<wsrf-rl:{name} xmlns:wsrf-rl="{WSRF_RL}">{inside}</wsrf-rl:{name}>'.encode()


def _parse_requested(element: etree._Element) -> Termination:
    if element.tag == _TIME and is_nil(element):
        return None
    try:
        value = parse_time(text_of(element))
    except ValueError as error:
        raise UnableToSetTerminationTimeFault(f"{error}") from None
    if isinstance(value, Duration) != (element.tag == _DURATION):
        wanted = "a duration, such as PT1H" if element.tag == _DURATION else "such as 2030-01-31T12:00:00Z"
        raise UnableToSetTerminationTimeFault(
            f"{_local(element.tag)} is {shown(text_of(element))}, and must be {wanted}"
        )
    return value


def _parse_date_time(element: etree._Element) -> datetime:
    try:
        moment = parse_time(text_of(element))
    except ValueError as error:
        raise InvalidMessage(f"{element.tag}: {error}") from None
    if not isinstance(moment, datetime):
        raise InvalidMessage(
            f"{element.tag} is {shown(text_of(element))}, and must be such as 2030-01-31T12:00:00Z"
        )
    return moment


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _empty(kind: type[Destroy | DestroyResponse]) -> Callable[[etree._Element], LifetimeMessage]:
    def parse(element: etree._Element) -> LifetimeMessage:
        if children_of(element):
            raise InvalidMessage(f"{element.tag} has the child {element[0].tag}, and must be empty")
        return kind()

    return parse


LIFETIME_PARSERS: dict[str, Callable[[etree._Element], LifetimeMessage]] = {
    rl("Destroy"): _empty(Destroy),
    rl("DestroyResponse"): _empty(DestroyResponse),
    rl("SetTerminationTime"): parse_set_termination_time,
    rl("SetTerminationTimeResponse"): parse_set_termination_time_response,
}
LIFETIME_ENCODERS: dict[type[Any], Callable[[Any], bytes]] = {
    Destroy: lambda _: _encode("Destroy"),
    DestroyResponse: lambda _: _encode("DestroyResponse"),
    SetTerminationTime: encode_set_termination_time,
    SetTerminationTimeResponse: encode_set_termination_time_response,
}

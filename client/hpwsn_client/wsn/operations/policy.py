"""Subscription policies: the standard's UseRaw (WS-BaseNotification 1.3 section 4.2) and HPwsn's Delivery.

Unknown policies raise UnrecognizedPolicyRequestFault, and invalid values of hp:Delivery raise
UnsupportedPolicyRequestFault. The node decides whether it grants a valid request.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lxml import etree

from hpwsn_client.wsn.soap.faults import UnrecognizedPolicyRequestFault, UnsupportedPolicyRequestFault
from hpwsn_client.wsn.soap.names import HPWSN, WSNT, hp, wsnt
from hpwsn_client.wsn.soap.sequence import children_of
from hpwsn_client.wsn.soap.times import Duration, format_time, parse_time
from hpwsn_client.wsn.soap.xml import escape_attribute
from hpwsn_client.wsn.topics.topic import shown

OVERFLOWS = ("drop-oldest", "reject", "dead-letter")
DISCIPLINES = ("fifo", "cet")

_USE_RAW, _DELIVERY = wsnt("UseRaw"), hp("Delivery")
_is_positive = re.compile(r"\+?0*[1-9][0-9]{0,8}").fullmatch


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """The requested options of a subscription's queue; None means the node's default."""

    max_queue: int | None = None
    overflow: str | None = None
    batch: int | None = None
    expires: Duration | None = None
    discipline: str | None = None
    """`fifo`: first in, first out; `cet`: fewest deliveries to others first, then the youngest."""
    alpha: int | None = None
    """With `cet`: the most deliveries to others; a notification with more is dropped."""
    beta: Duration | None = None
    """With `cet`: the age beyond which a notification is dropped."""


@dataclass(frozen=True, slots=True)
class SubscriptionPolicy:
    """The requested policies: raw delivery or Notify, and the options of the queue."""

    use_raw: bool = False
    delivery: DeliveryPolicy | None = None


def parse_policy(element: etree._Element) -> SubscriptionPolicy:
    """Parse a SubscriptionPolicy; UnrecognizedPolicyRequestFault lists unknown policies."""
    children = {child.tag: child for child in children_of(element)}
    unknown = tuple(tag for tag in children if tag not in (_USE_RAW, _DELIVERY))
    if unknown:
        names = ", ".join(map(shown, unknown))
        raise UnrecognizedPolicyRequestFault(
            f"unknown policies: {names}; use {_USE_RAW} or {_DELIVERY}", unrecognized=unknown
        )
    if len(children) != len(element):
        raise UnsupportedPolicyRequestFault(
            "a policy is repeated; give each once", unsupported=tuple(children)
        )
    delivery = children.get(_DELIVERY)
    return SubscriptionPolicy(_USE_RAW in children, None if delivery is None else _parse_delivery(delivery))


def encode_policy(policy: SubscriptionPolicy) -> bytes:
    """Write a SubscriptionPolicy element."""
    raw = "<wsnt:UseRaw/>" if policy.use_raw else ""
    delivery = "" if policy.delivery is None else _encode_delivery(policy.delivery)
    return f'<wsnt:SubscriptionPolicy xmlns:wsnt="{WSNT}">{raw}{delivery}</wsnt:SubscriptionPolicy>'.encode()


def _parse_delivery(element: etree._Element) -> DeliveryPolicy:
    values: dict[str, Any] = {}
    for name, text in element.attrib.items():
        if name not in _ATTRIBUTES:
            raise _unsupported(f"{shown(str(name))} is not an attribute of it; use {', '.join(_ATTRIBUTES)}")
        field, parse = _ATTRIBUTES[str(name)]
        try:
            values[field] = parse(str(text).strip(" \t\r\n"))
        except ValueError as error:
            raise _unsupported(f"{name!s}={shown(str(text))}: {error}") from None
    return DeliveryPolicy(**values)


def _encode_delivery(policy: DeliveryPolicy) -> str:
    values = ((name, getattr(policy, field)) for name, (field, _) in _ATTRIBUTES.items())
    attributes = "".join(f' {name}="{_written(value)}"' for name, value in values if value is not None)
    return f'<hp:Delivery xmlns:hp="{HPWSN}"{attributes}/>'


def _written(value: int | str | Duration) -> str:
    return format_time(value) if isinstance(value, Duration) else escape_attribute(str(value))


def _number(text: str) -> int:
    if not _is_positive(text):
        raise ValueError("it must be a whole number from 1 to 999999999")
    return int(text)


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        return text

    return parse


def _span(text: str) -> Duration:
    value = parse_time(text)
    if not isinstance(value, Duration) or (value.months, value.seconds) <= (0, 0):
        raise ValueError("it must be a duration above zero, such as PT1H")
    return value


_ATTRIBUTES: dict[str, tuple[str, Callable[[str], int | str | Duration]]] = {
    "maxQueue": ("max_queue", _number),
    "overflow": ("overflow", _one_of(*OVERFLOWS)),
    "batch": ("batch", _number),
    "expires": ("expires", _span),
    "discipline": ("discipline", _one_of(*DISCIPLINES)),
    "alpha": ("alpha", _number),
    "beta": ("beta", _span),
}


def _unsupported(reason: str) -> UnsupportedPolicyRequestFault:
    return UnsupportedPolicyRequestFault(
        f"the policy hp:Delivery cannot be granted: {reason}", unsupported=(_DELIVERY,)
    )

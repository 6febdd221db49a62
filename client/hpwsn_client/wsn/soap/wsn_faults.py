"""The faults of WS-Notification 1.3 as exceptions with the standard's names.

Each class knows its detail element, and encodes and parses the fields beyond WS-BaseFaults 1.2 section 2.
Parsing never fails, because an invalid fault still reports an error: fields that cannot be parsed are left
out.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from lxml import etree

from hpwsn_client.wsn.soap.addressing import EndpointReference, parse_epr
from hpwsn_client.wsn.soap.names import WSN_BR, WSNT, WSRF_BF, WSRF_R, WSRF_RL, WSRF_RP, wsnt
from hpwsn_client.wsn.soap.soap_faults import FaultCode, SoapFault
from hpwsn_client.wsn.soap.times import format_time, parse_time
from hpwsn_client.wsn.soap.xml import prefixed, qname_text

T = TypeVar("T")


class WsnFault(SoapFault):
    """A fault of the standard; the name of its detail element is the class name, or the argument `name`."""

    element: ClassVar[str]
    by_element: ClassVar[dict[str, type["WsnFault"]]] = {}

    def __init_subclass__(cls, namespace: str | None = WSNT, name: str = "") -> None:
        if namespace:
            cls.element = f"{{{namespace}}}{name or cls.__name__}"
            cls.by_element[cls.element] = cls

    def __init__(
        self,
        description: str,
        *,
        timestamp: datetime | None = None,
        originator: EndpointReference | None = None,
        code: FaultCode | None = None,
        detail: tuple[bytes, ...] = (),
    ) -> None:
        super().__init__(description, code=code, detail=detail)
        self.timestamp = timestamp
        self.originator = originator

    @property
    def description(self) -> str:
        """The message of the fault."""
        return self.reason

    def encode_own(self, now: datetime) -> Iterator[str]:
        """The elements of this fault beyond those of BaseFaultType."""
        yield from ()

    @classmethod
    def parse(
        cls, element: etree._Element, reason: str, detail: tuple[bytes, ...], code: FaultCode
    ) -> "WsnFault":
        """Parse the detail element of a fault; `reason` is used if there is no Description."""
        return cls(
            _child(_text, element, _bf("Description")) or reason,
            timestamp=_child(_date_time, element, _bf("Timestamp")),
            originator=_child(parse_epr, element, _bf("Originator")),
            code=code,
            detail=detail,
            **cls.parse_own(element),
        )

    @classmethod
    def parse_own(cls, element: etree._Element) -> dict[str, Any]:
        """The constructor arguments for the elements of encode_own, as far as they can be parsed."""
        return {}


def _bf(local: str) -> str:
    return f"{{{WSRF_BF}}}{local}"


def _parse_or_none(read: Callable[[etree._Element], T], element: etree._Element) -> T | None:
    try:
        return read(element)
    except (SoapFault, ValueError):
        return None


def _child(read: Callable[[etree._Element], T], element: etree._Element, tag: str) -> T | None:
    child = element.find(tag)
    return None if child is None else _parse_or_none(read, child)


def _text(element: etree._Element) -> str:
    return element.text or ""


def _qname(element: etree._Element) -> str:
    return qname_text(element, element.text)


def _date_time(element: etree._Element) -> datetime | None:
    value = parse_time(element.text or "")
    return value if isinstance(value, datetime) else None


class _NamesFault(WsnFault, namespace=None):
    """A fault with a list of QNames, which are Clark names in Python."""

    listed: ClassVar[str]
    field: ClassVar[str]

    def encode_own(self, now: datetime) -> Iterator[str]:
        for clark in getattr(self, self.field):
            name, declaration = prefixed(clark)
            yield f"<wsnt:{self.listed}{declaration}>{name}</wsnt:{self.listed}>"

    @classmethod
    def parse_own(cls, element: etree._Element) -> dict[str, Any]:
        names = (_parse_or_none(_qname, child) for child in element.iterchildren(wsnt(cls.listed)))
        return {cls.field: tuple(name for name in names if name)}


class _TimeFault(WsnFault, namespace=None):
    """A fault with the range of acceptable times; `minimum_time` defaults to now."""

    def __init__(
        self,
        description: str,
        *,
        minimum_time: datetime | None = None,
        maximum_time: datetime | None = None,
        **base: Any,
    ) -> None:
        super().__init__(description, **base)
        self.minimum_time = minimum_time
        self.maximum_time = maximum_time

    def encode_own(self, now: datetime) -> Iterator[str]:
        yield f"<wsnt:MinimumTime>{format_time(self.minimum_time or now)}</wsnt:MinimumTime>"
        if self.maximum_time:
            yield f"<wsnt:MaximumTime>{format_time(self.maximum_time)}</wsnt:MaximumTime>"

    @classmethod
    def parse_own(cls, element: etree._Element) -> dict[str, Any]:
        return {
            "minimum_time": _child(_date_time, element, wsnt("MinimumTime")),
            "maximum_time": _child(_date_time, element, wsnt("MaximumTime")),
        }


class ResourceUnknownFault(WsnFault, namespace=WSRF_R):
    """The resource does not exist, or no longer exists."""


class InvalidResourcePropertyQNameFault(WsnFault, namespace=WSRF_RP):
    """The resource has no property with this name."""


class UnknownQueryExpressionDialectFault(WsnFault, namespace=WSRF_RP):
    """The dialect of the query on resource properties is not supported."""


class InvalidQueryExpressionFault(WsnFault, namespace=WSRF_RP):
    """The query on resource properties is not valid in its dialect."""


class QueryEvaluationErrorFault(WsnFault, namespace=WSRF_RP):
    """The query on resource properties failed."""


class UnableToSetTerminationTimeFault(WsnFault, namespace=WSRF_RL):
    """The requested termination time is not a valid time."""


class TerminationTimeChangeRejectedFault(WsnFault, namespace=WSRF_RL):
    """The resource does not accept the requested termination time."""


class LifetimeResourceNotDestroyedFault(WsnFault, namespace=WSRF_RL, name="ResourceNotDestroyedFault"):
    """Destroy failed; WS-BrokeredNotification has its own ResourceNotDestroyedFault for registrations."""

    default_code = FaultCode.RECEIVER


class InvalidFilterFault(_NamesFault):
    """The filter has unknown filter elements."""

    listed, field = "UnknownFilter", "unknown_filters"

    def __init__(self, description: str, *, unknown_filters: tuple[str, ...] = (), **base: Any) -> None:
        super().__init__(description, **base)
        # The schema requires at least one name; wsnt:Filter stands for the filter as a whole.
        self.unknown_filters = unknown_filters or (wsnt("Filter"),)


class TopicExpressionDialectUnknownFault(WsnFault):
    """The dialect of the topic expression is not supported."""


class InvalidTopicExpressionFault(WsnFault):
    """The topic expression is not valid in its dialect."""


class TopicNotSupportedFault(WsnFault):
    """The topic is not in the broker's fixed topic set."""


class MultipleTopicsSpecifiedFault(WsnFault):
    """The expression matches several topics; one is required."""


class NoCurrentMessageOnTopicFault(WsnFault):
    """The topic has no current message."""


class InvalidProducerPropertiesExpressionFault(WsnFault):
    """The filter expression on producer properties is not valid."""


class InvalidMessageContentExpressionFault(WsnFault):
    """The filter expression on message content is not valid."""


class UnrecognizedPolicyRequestFault(_NamesFault):
    """The request has unknown subscription policies."""

    listed, field = "UnrecognizedPolicy", "unrecognized"

    def __init__(self, description: str, *, unrecognized: tuple[str, ...] = (), **base: Any) -> None:
        super().__init__(description, **base)
        self.unrecognized = unrecognized


class UnsupportedPolicyRequestFault(_NamesFault):
    """The request has known subscription policies with unsupported values."""

    listed, field = "UnsupportedPolicy", "unsupported"

    def __init__(self, description: str, *, unsupported: tuple[str, ...] = (), **base: Any) -> None:
        super().__init__(description, **base)
        self.unsupported = unsupported


class NotifyMessageNotSupportedFault(WsnFault):
    """The producer sends only raw messages."""


class UnacceptableInitialTerminationTimeFault(_TimeFault):
    """The termination time requested in Subscribe or RegisterPublisher is not acceptable."""


class UnacceptableTerminationTimeFault(_TimeFault):
    """The termination time requested in Renew is not acceptable."""


class SubscribeCreationFailedFault(WsnFault):
    """The subscription could not be created."""

    default_code = FaultCode.RECEIVER


class UnableToDestroySubscriptionFault(WsnFault):
    """The subscription could not be ended."""

    default_code = FaultCode.RECEIVER


class UnableToCreatePullPointFault(WsnFault):
    """The pull point could not be created."""

    default_code = FaultCode.RECEIVER


class UnableToDestroyPullPointFault(WsnFault):
    """The pull point could not be destroyed."""

    default_code = FaultCode.RECEIVER


class UnableToGetMessagesFault(WsnFault):
    """The messages of the pull point could not be read."""

    default_code = FaultCode.RECEIVER


class PauseFailedFault(WsnFault):
    """The subscription could not be paused."""

    default_code = FaultCode.RECEIVER


class ResumeFailedFault(WsnFault):
    """The subscription could not be resumed."""

    default_code = FaultCode.RECEIVER


class PublisherRegistrationRejectedFault(WsnFault, namespace=WSN_BR):
    """The broker rejects this publisher."""


class PublisherRegistrationFailedFault(WsnFault, namespace=WSN_BR):
    """The publisher could not be registered."""

    default_code = FaultCode.RECEIVER


class ResourceNotDestroyedFault(WsnFault, namespace=WSN_BR):
    """The registration could not be destroyed."""

    default_code = FaultCode.RECEIVER

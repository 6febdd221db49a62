"""The faults of WS-Notification 1.3: exceptions of the standard's names, to raise where the standard says.

Each knows the element that is its detail, and how to write and read what it has beyond WS-BaseFaults 1.2
section 2. Reading never refuses: a broken fault still says that something went wrong, so what cannot be read
of it is left out.
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
    """A fault of the standard, whose detail is the element that the class is named for, or says."""

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
        """What went wrong, in plain words."""
        return self.reason

    def encode_own(self, now: datetime) -> Iterator[str]:
        """The elements that this fault has beyond those of every base fault."""
        yield from ()

    @classmethod
    def parse(
        cls, element: etree._Element, reason: str, detail: tuple[bytes, ...], code: FaultCode
    ) -> "WsnFault":
        """Read the detail element of such a fault; reason is SOAP's, for want of a Description."""
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
        """The constructor's arguments that encode_own has written, as far as they can be read."""
        return {}


def _bf(local: str) -> str:
    return f"{{{WSRF_BF}}}{local}"


def _leniently(read: Callable[[etree._Element], T], element: etree._Element) -> T | None:
    try:
        return read(element)
    except (SoapFault, ValueError):
        return None


def _child(read: Callable[[etree._Element], T], element: etree._Element, tag: str) -> T | None:
    child = element.find(tag)
    return None if child is None else _leniently(read, child)


def _text(element: etree._Element) -> str:
    return element.text or ""


def _qname(element: etree._Element) -> str:
    return qname_text(element, element.text)


def _date_time(element: etree._Element) -> datetime | None:
    value = parse_time(element.text or "")
    return value if isinstance(value, datetime) else None


class _NamesFault(WsnFault, namespace=None):
    """A fault that lists QNames, given and kept as Clark names."""

    listed: ClassVar[str]
    field: ClassVar[str]

    def encode_own(self, now: datetime) -> Iterator[str]:
        for clark in getattr(self, self.field):
            name, declaration = prefixed(clark)
            yield f"<wsnt:{self.listed}{declaration}>{name}</wsnt:{self.listed}>"

    @classmethod
    def parse_own(cls, element: etree._Element) -> dict[str, Any]:
        names = (_leniently(_qname, child) for child in element.iterchildren(wsnt(cls.listed)))
        return {cls.field: tuple(name for name in names if name)}


class _TimeFault(WsnFault, namespace=None):
    """A fault that tells which times would have been accepted; the earliest is now unless said otherwise."""

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
    """No resource lives at the address, or no longer."""


class InvalidResourcePropertyQNameFault(WsnFault, namespace=WSRF_RP):
    """The resource has no property of this name."""


class UnknownQueryExpressionDialectFault(WsnFault, namespace=WSRF_RP):
    """The dialect of a query over properties is none of those offered."""


class InvalidQueryExpressionFault(WsnFault, namespace=WSRF_RP):
    """The query over properties is not one of its dialect."""


class QueryEvaluationErrorFault(WsnFault, namespace=WSRF_RP):
    """The query over properties could not be carried out."""


class UnableToSetTerminationTimeFault(WsnFault, namespace=WSRF_RL):
    """What was asked for is no time that a resource could end at."""


class TerminationTimeChangeRejectedFault(WsnFault, namespace=WSRF_RL):
    """The resource does not accept the time that was asked for."""


class LifetimeResourceNotDestroyedFault(WsnFault, namespace=WSRF_RL, name="ResourceNotDestroyedFault"):
    """The resource could not be ended by Destroy; a registration has a fault of the same name of its own."""

    default_code = FaultCode.RECEIVER


class InvalidFilterFault(_NamesFault):
    """Filters that nobody here knows."""

    listed, field = "UnknownFilter", "unknown_filters"

    def __init__(self, description: str, *, unknown_filters: tuple[str, ...] = (), **base: Any) -> None:
        super().__init__(description, **base)
        # The schema wants at least one name, and the filter as a whole is a true one.
        self.unknown_filters = unknown_filters or (wsnt("Filter"),)


class TopicExpressionDialectUnknownFault(WsnFault):
    """The dialect of a topic expression is none of those offered."""


class InvalidTopicExpressionFault(WsnFault):
    """The topic expression is not one of its dialect."""


class TopicNotSupportedFault(WsnFault):
    """The topic is not in the tree, which is fixed."""


class MultipleTopicsSpecifiedFault(WsnFault):
    """The expression names several topics where one is wanted."""


class NoCurrentMessageOnTopicFault(WsnFault):
    """Nothing has been published on the topic yet."""


class InvalidProducerPropertiesExpressionFault(WsnFault):
    """The expression over the producer's properties cannot be used."""


class InvalidMessageContentExpressionFault(WsnFault):
    """The expression over the message's content cannot be used."""


class UnrecognizedPolicyRequestFault(_NamesFault):
    """Subscription policies that nobody here knows."""

    listed, field = "UnrecognizedPolicy", "unrecognized"

    def __init__(self, description: str, *, unrecognized: tuple[str, ...] = (), **base: Any) -> None:
        super().__init__(description, **base)
        self.unrecognized = unrecognized


class UnsupportedPolicyRequestFault(_NamesFault):
    """Subscription policies that are known but not offered as asked for."""

    listed, field = "UnsupportedPolicy", "unsupported"

    def __init__(self, description: str, *, unsupported: tuple[str, ...] = (), **base: Any) -> None:
        super().__init__(description, **base)
        self.unsupported = unsupported


class NotifyMessageNotSupportedFault(WsnFault):
    """The producer sends raw messages only."""


class UnacceptableInitialTerminationTimeFault(_TimeFault):
    """The lifetime asked for in Subscribe or RegisterPublisher cannot be given."""


class UnacceptableTerminationTimeFault(_TimeFault):
    """The lifetime asked for in Renew cannot be given."""


class SubscribeCreationFailedFault(WsnFault):
    """The subscription could not be made."""

    default_code = FaultCode.RECEIVER


class UnableToDestroySubscriptionFault(WsnFault):
    """The subscription could not be ended."""

    default_code = FaultCode.RECEIVER


class UnableToCreatePullPointFault(WsnFault):
    """The pull point could not be made."""

    default_code = FaultCode.RECEIVER


class UnableToDestroyPullPointFault(WsnFault):
    """The pull point could not be ended."""

    default_code = FaultCode.RECEIVER


class UnableToGetMessagesFault(WsnFault):
    """The pull point could not give its messages."""

    default_code = FaultCode.RECEIVER


class PauseFailedFault(WsnFault):
    """The subscription could not be paused."""

    default_code = FaultCode.RECEIVER


class ResumeFailedFault(WsnFault):
    """The subscription could not be resumed."""

    default_code = FaultCode.RECEIVER


class PublisherRegistrationRejectedFault(WsnFault, namespace=WSN_BR):
    """The broker does not want this publisher."""


class PublisherRegistrationFailedFault(WsnFault, namespace=WSN_BR):
    """The publisher could not be registered."""

    default_code = FaultCode.RECEIVER


class ResourceNotDestroyedFault(WsnFault, namespace=WSN_BR):
    """The registration could not be ended."""

    default_code = FaultCode.RECEIVER

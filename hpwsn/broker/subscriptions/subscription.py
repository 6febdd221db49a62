"""A subscription as the broker holds it: what was asked for, where it stands, and how its last deliveries
went.

State only; `subscriptions` changes it for its owner, `delivery` moves its cursor.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import cast

from hpwsn.broker.queueing.progress import Progress
from hpwsn.broker.subscriptions.cursor import Cursor
from hpwsn.broker.subscriptions.webhook import Webhook, webhook_of
from hpwsn.matching.content.content_group import ContentGroup
from hpwsn.notification import Notification
from hpwsn_client.wsn.formats.original import is_original
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.times import Duration
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression


class State(Enum):
    """Where a subscription is in its life."""

    LIVE = "live"
    EXPIRED = "expired"
    """Its time is over, but a Renew within the grace brings it back."""
    ENDED = "ended"


_LIVE = State.LIVE
"""A member of an Enum is a call to look up, and this one is looked up for every send."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What every push to one subscription has in common, encoded once."""

    url: str
    headers: bytes
    before_id: bytes
    before_first: bytes
    """From the id to the first notification's own content."""
    header_end: int | None
    """Where in `before_first` the SOAP headers end; None for consumers that get no further header."""
    between: bytes
    """From one content to the next."""
    after_last: bytes
    content: Callable[[Notification], bytes]
    """What is sent of a notification."""
    single: bool
    """Whether every notification travels alone."""


@dataclass(slots=True, eq=False)
class Subscription:
    """One consumer's standing request; compared by identity."""

    id: str
    request: Subscribe
    version: SoapVersion
    created: float
    terminates: float | None
    cursor: Cursor
    base_url: str
    """What the node's own addresses begin with."""
    pull_point: str | None = None
    paused: bool = False
    producer_holds: bool = True
    """Whether the producer's properties are as its filters want them; if not, nothing is for it."""
    state: State = State.LIVE
    progress: Progress = field(default_factory=Progress)
    prepared: Prepared | None = None
    """What its sender keeps for the next send."""
    rejects: bool | None = None
    """Whether a full queue turns publishers away; None until the queue limits were looked up."""
    queue_limit: int | None = None
    """How many notifications may wait; None until the queue limits were looked up."""
    expires: Duration | None = field(init=False)
    """How long a notification may wait for the consumer, if that is bounded."""
    webhook: Webhook | None = field(init=False)
    """How a consumer gets JSON; None for all others."""

    def __post_init__(self) -> None:
        self.webhook = webhook_of(self.request)
        asked = self.request.policy.delivery
        self.expires = asked.expires if asked is not None else None

    @property
    def address(self) -> str:
        """The subscription's own address, where its manager answers."""
        return f"{self.base_url}/wsn/subscriptions/{self.id}"

    topics = cast("tuple[TopicExpression, ...]", property(attrgetter("request.filter.topics")))
    """The topic expressions, all of which a notification's topic must match."""
    content = cast("tuple[ContentFilter, ...]", property(attrgetter("request.filter.content")))
    """The content filters, all of which must match."""
    producer_properties = cast(
        "tuple[ContentFilter, ...]", property(attrgetter("request.filter.producer_properties"))
    )
    """The filters on the properties of the producer, which is this broker."""

    @property
    def key(self) -> Hashable:
        """What makes a later Subscribe a repetition of this one."""
        return subscription_key(self.request, self.pull_point)

    @property
    def deliverable(self) -> bool:
        """Whether notifications may go out now."""
        return not self.paused and self.state is _LIVE

    @property
    def retrying(self) -> bool:
        """Whether notifications wait for a consumer that has failed since its last delivery."""
        return self.progress.first_failure is not None and self.deliverable and self.cursor.backlog > 0


Subscriber = Subscription | ContentGroup[Subscription]
"""What the topic tree holds: a subscription, or those with content filters on the same topics together."""


def subscriptions_of(subscribers: Iterable[Subscriber]) -> Iterator[Subscription]:
    """The single subscriptions among those of the topic tree."""
    for one in subscribers:
        if isinstance(one, ContentGroup):
            yield from one
        else:
            yield one


def subscription_key(request: Subscribe, pull_point: str | None) -> Hashable:
    """Equal for requests that ask for the same thing to be sent to the same place."""
    consumer = request.consumer
    place = pull_point or consumer.address, consumer.reference_parameters
    return *place, request.filter, request.policy, is_original(request), webhook_of(request)

"""The values that go into the journal and come out of it; they know no database.

Times are seconds since the epoch, kept to the microsecond. A topic's key is the text of its Topic, and "" for
a notification without a topic.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hpwsn.notification import Notification

Durability = Literal["none", "commit", "fsync"]

NO_TOPIC = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """A notification and its place in the log."""

    offset: int
    notification: Notification


@dataclass(frozen=True, slots=True)
class Scan:
    """A stretch of the log: what matched, and how far everything has been looked at."""

    entries: list[Stored]
    upto: int


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A subscription as it survives a restart; `address` is its pull point, if it has one."""

    id: str
    request: bytes
    version: str
    created: float
    terminates: float | None = None
    paused: bool = False
    cursor: int = 0
    address: str | None = None


@dataclass(frozen=True, slots=True)
class PullPointRecord:
    """A pull point as it survives a restart; the cursor is over what is posted straight to it."""

    id: str
    name: str | None
    created: float
    terminates: float | None = None
    cursor: int = 0


@dataclass(frozen=True, slots=True)
class RegistrationRecord:
    """A publisher's registration as it survives a restart."""

    id: str
    request: bytes
    version: str
    created: float
    terminates: float | None = None


@dataclass(frozen=True, slots=True)
class UpstreamRecord:
    """A subscription that this node has at a registered publisher, for the topic at that place.

    Where it is `paused`, the publisher was asked to pause it, and may or may not have heard.
    """

    registration: str
    place: int
    reference: bytes
    paused: bool = False
    terminates: float | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """One waiting message of a pull point; its subscription may be gone by now."""

    seq: int
    subscription_id: str | None
    stored: Stored


@dataclass(frozen=True, slots=True)
class MessageId:
    """An id that a publisher gave, when, and the offsets that it stands for."""

    id: str
    time: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A notification that a subscription could not be given; `consumer` is the address, "" if unknown."""

    id: int
    subscription_id: str
    stored: Stored
    reason: str
    time: float
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class FrameRange:
    """Frames of a backbone by their source, from one number to another, both included."""

    source: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SpooledFrame:
    """A frame that waits for the backbone's server, with how many notifications its body holds."""

    source: str
    number: int
    notifications: int
    body: bytes


@dataclass(frozen=True, slots=True)
class SpoolSize:
    """How much waits in the spool."""

    frames: int
    notifications: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """What an append from a backbone brings beside notifications; its transaction stores that too.

    The frames that it holds, the ranges of stored frames as they are then, and whether it came from peers.
    """

    frames: Sequence[FrameRange] = ()
    ranges: Sequence[FrameRange] = ()
    time: float = 0.0
    from_peers: bool = False


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a node needs to carry on where the last one stopped."""

    next_offset: int
    subscriptions: Iterable[SubscriptionRecord]
    pull_points: list[PullPointRecord]
    current: dict[str, int]
    message_ids: list[MessageId]
    registrations: list[RegistrationRecord] = field(default_factory=list)
    upstreams: list[UpstreamRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Retention:
    """What has to stay, and the limits for all else.

    Entries after `head` stay; up to there, those of a topic after its offset in `needs`, and those without
    a target after `needs_all`.
    """

    head: int
    needs: Mapping[str, int] = field(default_factory=dict)
    needs_all: int | None = None
    age: float | None = None
    size: int | None = None
    id_window: float = 0.0
    dead_letter_age: float | None = None
    dead_letter_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much one pruning removed; `forgotten` are topics left without a current message or any entry."""

    entries: int
    message_ids: int
    dead_letters: int = 0
    forgotten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The journal in figures, for an operator."""

    last_offset: int
    commits: int
    entries: int
    mean_group: float
    failures: int
    lost: int
    database_bytes: int
    waiting: int
    waiting_bytes: int
    unavailable: str | None

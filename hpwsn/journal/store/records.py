"""The values that are stored in the journal and read from it, independent of the database.

Times are seconds since the epoch, stored with microseconds. A topic's key is the text of its Topic, and ""
for a notification without a topic.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hpwsn.notification import Notification, Run

Durability = Literal["none", "commit", "fsync"]

NO_TOPIC = ""


@dataclass(frozen=True, slots=True)
class Stored:
    """A notification and its offset in the log."""

    offset: int
    notification: Notification


@dataclass(frozen=True, slots=True)
class Scan:
    """The matching entries of a part of the log, which was read up to and including `upto`."""

    entries: list[Stored]
    upto: int


@dataclass(frozen=True, slots=True)
class RunScan:
    """Like Scan, with runs of matching entries and the offset of the first entry in each."""

    runs: list[tuple[int, Run]]
    upto: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many entries a reader has to read, and the offset up to which the first of them lie."""

    entries: int
    upto: int


@dataclass(frozen=True, slots=True)
class SubscriptionRecord:
    """A stored subscription; `address` is the id of its local pull point, if it has one."""

    id: str
    request: bytes
    version: str
    created: float
    terminates: float | None = None
    paused: bool = False
    cursor: int = 0
    address: str | None = None
    ahead: tuple[int, ...] = ()
    """Offsets beyond the cursor that were delivered or dropped; only `Journal.open` fills it."""


@dataclass(frozen=True, slots=True)
class PullPointRecord:
    """A stored pull point; the cursor counts the notifications posted to its address."""

    id: str
    name: str | None
    created: float
    terminates: float | None = None
    cursor: int = 0


@dataclass(frozen=True, slots=True)
class RegistrationRecord:
    """A stored registration of a publisher."""

    id: str
    request: bytes
    version: str
    created: float
    terminates: float | None = None


@dataclass(frozen=True, slots=True)
class UpstreamRecord:
    """A subscription that this node has at a registered publisher, for its topic number `place`.

    `paused` means that a pause was requested; the publisher may not have received the request.
    """

    registration: str
    place: int
    reference: bytes
    paused: bool = False
    terminates: float | None = None


@dataclass(frozen=True, slots=True)
class Pulled:
    """One queued message of a pull point; its subscription may have ended since."""

    seq: int
    subscription_id: str | None
    stored: Stored


@dataclass(frozen=True, slots=True)
class MessageId:
    """An idempotency key of a publisher, its time, and the offsets of its notifications."""

    id: str
    time: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A notification that could not be delivered; `consumer` is the address, "" if unknown."""

    id: int
    subscription_id: str
    stored: Stored
    reason: str
    time: float
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetterGroup:
    """Dead letters of one subscription with the same normal form of the reason; times are first and last."""

    subscription_id: str
    reason: str
    count: int
    first: float
    last: float
    consumer: str


@dataclass(frozen=True, slots=True)
class FrameRange:
    """Backbone frames of one source, from number `first` to `last`, both included."""

    source: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SpooledFrame:
    """A frame that waits for the backbone's server, with the number of notifications in its body."""

    source: str
    number: int
    notifications: int
    body: bytes


@dataclass(frozen=True, slots=True)
class SpoolSize:
    """The size of the spool."""

    frames: int
    notifications: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """Data that an append from a backbone stores in its transaction, beside the notifications.

    `frames` are the frames of this append; `ranges` are all frames that are stored after it.
    """

    frames: Sequence[FrameRange] = ()
    ranges: Sequence[FrameRange] = ()
    time: float = 0.0
    from_peers: bool = False


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state that a node restores when it starts."""

    next_offset: int
    subscriptions: Iterable[SubscriptionRecord]
    pull_points: list[PullPointRecord]
    current: dict[str, int]
    message_ids: list[MessageId]
    registrations: list[RegistrationRecord] = field(default_factory=list)
    upstreams: list[UpstreamRecord] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    """The topics with notifications that were accepted while the topic was internal."""
    documents: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """What other parts of the node keep, by kind and name."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The entries that must stay, and the limits for all others.

    Needed are the entries after `head`, the entries of a topic after its offset in `needs`, and the entries
    without a target after `needs_all`.
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
    """The result of one pruning; `forgotten` are topics that now have no current message or no entry."""

    entries: int
    message_ids: int
    dead_letters: int = 0
    forgotten: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The journal's figures for an operator."""

    last_offset: int
    commits: int
    changes: int
    entries: int
    mean_group: float
    failures: int
    lost: int
    missing: int
    """Large notifications in the log whose content is not there."""
    database_bytes: int
    waiting: int
    waiting_bytes: int
    unavailable: str | None

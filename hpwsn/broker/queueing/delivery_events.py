"""The events of the delivery machine, and the actions that it asks for.

An event tells what happened to one subscription, with all that the decision depends on. An action is for the
driver to carry out. Both are values; `delivery_steps` has the decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hpwsn.broker.lifetimes.message_expiry import Sorted
from hpwsn.broker.lifetimes.retry import RetryPolicy
from hpwsn.broker.push.request import Outcome
from hpwsn.broker.queueing.progress import Attempt
from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.times import Duration


class Turn(NamedTuple):
    """It is the subscription's turn to do something."""

    live: bool
    """Neither ended, nor expired, nor is the node closing."""
    excess: int
    """How many of the oldest notifications must leave the queue."""
    counted: bool
    """The length of the queue is known."""
    resting: bool
    """It waits for a retry."""
    paused: bool
    beside: bool
    """Dead letters or current messages are to be sent beside the queue."""
    waiting: bool
    """Notifications wait in memory."""
    behind: bool
    """More of the log must be read."""


class Full(NamedTuple):
    """The queue is too long; these are the oldest offsets in memory, which must leave it."""

    offsets: Sequence[int]
    limit: int
    overflow: str


class Chosen(NamedTuple):
    """These are next; `size` of them go into a send, `expires` is how long each may wait."""

    offsets: Sequence[int]
    notifications: Sequence[Notification]
    expires: Duration
    now: float
    size: int


class Delivered(NamedTuple):
    """A send was acknowledged by the consumer."""

    offsets: Sequence[int]


class Failed(NamedTuple):
    """A send failed. `now` is the loop's clock, `clock` the wall clock, `random` a number from 0 to 1.

    `ends` tells that a consumer which is gone for good ends its subscription.
    """

    outcome: Outcome
    attempt: Attempt
    policy: RetryPolicy
    now: float
    clock: float
    random: float
    ends: bool


class Buried(NamedTuple):
    """The journal has made dead letters of notifications, or has failed to."""

    offsets: Sequence[int]
    stored: bool


class SentBeside(NamedTuple):
    """A send beside the queue ended."""

    outcome: Outcome
    size: int


Event = Turn | Full | Chosen | Delivered | Failed | Buried | SentBeside


@dataclass(frozen=True, slots=True)
class Settle:
    """Nothing more can be done now: tell whoever waits for that."""


@dataclass(frozen=True, slots=True)
class Relieve:
    """Take so many of the oldest notifications out of the queue."""

    excess: int


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Read the next part of the log."""


@dataclass(frozen=True, slots=True)
class SendBeside:
    """Send dead letters or current messages that were asked for."""


@dataclass(frozen=True, slots=True)
class SendNext:
    """Choose the next notifications and send them."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send these."""

    offsets: Sequence[int]
    notifications: Sequence[Notification]


@dataclass(frozen=True, slots=True)
class Expire:
    """Take out of the queue what waited too long; `notifications` are those that leave."""

    found: Sorted
    notifications: Sequence[Notification]


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """These offsets are done with: move the cursor, and store that."""

    offsets: Sequence[int]


@dataclass(frozen=True, slots=True)
class Passed:
    """These offsets are done with, and the journal already knows: move the cursor."""

    offsets: Sequence[int]


@dataclass(frozen=True, slots=True)
class Bury:
    """Make dead letters of these; `outcome` is the last attempt's, if an attempt is the reason."""

    offsets: Sequence[int]
    reason: str
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Drop these and count them."""

    offsets: Sequence[int]
    reason: str


@dataclass(frozen=True, slots=True)
class NoteTrouble:
    """The consumer begins to fail: tell the operator."""

    reason: str


@dataclass(frozen=True, slots=True)
class EndSubscription:
    """The consumer is gone for good."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Take the next turn after so many seconds."""

    pause: float


@dataclass(frozen=True, slots=True)
class Proceed:
    """Take the next turn now."""


@dataclass(frozen=True, slots=True)
class ProceedSoon:
    """Take the next turn in the next round of the event loop."""


Action = (
    Settle
    | Relieve
    | CatchUp
    | SendBeside
    | SendNext
    | Send
    | Expire
    | Acknowledge
    | Passed
    | Bury
    | Drop
    | NoteTrouble
    | EndSubscription
    | Rest
    | Proceed
    | ProceedSoon
)
Actions = Sequence[Action]

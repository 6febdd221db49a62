"""The state machine of delivery, without I/O: `decide(state, event)` says what a subscription does next.

The state is the `Progress` of one subscription, which `decide` updates. Events tell what happened, and what
the decision depends on: the queue, the clock, a random number. The driver (`broker/delivery/delivery.py`)
carries out the actions in their order, and reports what came of them as the next events. Which offsets are
next is the choice of the cursor; this machine only says that a send is due.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hpwsn.broker.lifetimes.message_expiry import Sorted, sort_out
from hpwsn.broker.push.request import OutcomeKind
from hpwsn.broker.queueing.delivery_events import (
    Acknowledge,
    Actions,
    Buried,
    Bury,
    CatchUp,
    Chosen,
    Delivered,
    Drop,
    EndSubscription,
    Event,
    Expire,
    Failed,
    Full,
    NoteTrouble,
    Passed,
    Proceed,
    ProceedSoon,
    Relieve,
    Rest,
    Send,
    SendBeside,
    SendNext,
    SentBeside,
    Settle,
    Turn,
)
from hpwsn.broker.queueing.progress import Attempt, Progress, worn_out
from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.times import Duration

JOURNAL_PAUSE = 1.0
"""Seconds until something that the journal refused is tried again."""
DEAD_LETTER = "dead-letter"
"""The overflow policy that keeps what leaves a full queue."""

_DELIVERED, _UNAVAILABLE, _CANCELLED = OutcomeKind.DELIVERED, OutcomeKind.UNAVAILABLE, OutcomeKind.CANCELLED

_NOTHING: Actions = ()
_CATCH_UP, _BESIDE = (CatchUp(),), (SendBeside(),)
SEND_NEXT: Actions = (SendNext(),)
SETTLE: Actions = (Settle(),)
"""With `SEND_NEXT` the usual answers to a turn, which the driver knows by identity."""
_PROCEED, _SOON = Proceed(), ProceedSoon()


def decide(state: Progress, event: Event) -> Actions:
    """Update the state by what happened, and return what to do now."""
    return _RULES[type(event)](state, event)


def send_size(state: Progress, batch: int) -> int:
    """How many notifications go into the next send."""
    return 1 if state.alone else batch


def expire(
    after: Duration, offsets: Sequence[int], notifications: Sequence[Notification], now: float
) -> tuple[Sorted, Sequence[Expire]]:
    """What may still be sent, and the action for what waited too long, if anything did."""
    found = sort_out(after, offsets, notifications, now)
    if not found.unsent:
        return found, ()
    gone = set(found.unsent)
    left = [each for offset, each in zip(offsets, notifications, strict=True) if offset in gone]
    return found, (Expire(found, left),)


def next_step(
    state: Progress,
    live: bool,
    excess: int,
    counted: bool,
    resting: bool,
    paused: bool,
    beside: object,
    waiting: object,
    behind: bool,
) -> Actions:
    """The answer to a Turn with these fields: too long a queue first, what goes out beside it, the queue.

    Every notification takes this way, so the driver calls it without an event. Of `beside` and `waiting`
    only the truth counts.
    """
    if state.busy:
        return _NOTHING
    if not live:
        return SETTLE
    if excess:
        return (Relieve(excess),)
    if not counted:
        return _CATCH_UP
    if resting:
        return _NOTHING
    if paused:
        return SETTLE
    if beside:
        return _BESIDE
    if waiting:
        return SEND_NEXT
    return _CATCH_UP if behind else SETTLE


def _turn(state: Progress, event: Turn) -> Actions:
    return next_step(state, *event)


def _full(state: Progress, event: Full) -> Actions:
    if not event.offsets:
        return _CATCH_UP
    if event.overflow == DEAD_LETTER:
        return (Bury(event.offsets, f"more than {event.limit} notifications waited"),)
    return Drop(event.offsets, "the queue was full"), Acknowledge(event.offsets), _PROCEED


def _chosen(state: Progress, event: Chosen) -> Actions:
    """What waited too long leaves the queue; a send has as many of the rest as fit."""
    found, told = expire(event.expires, event.offsets, event.notifications, event.now)
    if not found.offsets:
        return *told, _SOON
    return *told, Send(found.offsets[: event.size], found.notifications[: event.size])


def note_delivery(state: Progress, count: int) -> None:
    """Update the state by a delivery, to which the answer always is to acknowledge and to proceed."""
    state.busy = False
    if state.alone:
        state.sent_alone(count)
    state.note_delivered(count)


def _delivered(state: Progress, event: Delivered) -> Actions:
    note_delivery(state, len(event.offsets))
    return Acknowledge(event.offsets), _PROCEED


def _failed(state: Progress, event: Failed) -> Actions:
    """Retry later, alone if the consumer may dislike one of several, or give up what was tried enough."""
    outcome, state.busy = event.outcome, False
    if outcome.kind is _CANCELLED:
        return _NOTHING
    state.last_error = outcome.reason
    if outcome.kind is _UNAVAILABLE:
        return (Rest(JOURNAL_PAUSE),)
    state.failures += 1
    told: Actions = ()
    if state.first_failure is None:
        state.first_failure = event.now
        told = (NoteTrouble(outcome.reason),)
    if outcome.gone and event.ends:
        return *told, EndSubscription()
    return *told, *_after_failure(state, event, sorted(event.attempt))


def _after_failure(state: Progress, event: Failed, attempt: Attempt) -> Actions:
    outcome = event.outcome
    if outcome.kind is not state.kind or not state.same:
        state.kind, state.same, state.tried = outcome.kind, 0, attempt[-1][0]
    if len(attempt) > 1 and outcome.status is not None:
        # It may be one notification that the consumer does not like: find out which.
        state.alone = len(attempt)
    dead = worn_out(state, event.policy, attempt, event.now, event.clock)
    if dead and (len(attempt) == 1 or outcome.status is None):
        state.attempt = state.same = 0
        return (Bury(dead, outcome.reason, outcome),)
    pause = event.policy.pause(state.attempt, event.random, outcome.retry_after)
    state.attempt += 1
    state.same += 1
    if state.announced:
        state.announced, pause = False, 0.0
    return (Rest(pause),)


def _buried(state: Progress, event: Buried) -> Actions:
    state.busy = False
    if not event.stored:
        return (Rest(JOURNAL_PAUSE),)
    state.sent_alone(len(event.offsets))
    return Passed(event.offsets), _PROCEED


def _sent_beside(state: Progress, event: SentBeside) -> Actions:
    """It is tried once: what failed is not retried, and the queue goes on."""
    state.busy = False
    if event.outcome.kind is _DELIVERED:
        state.note_delivered(event.size)
    else:
        state.failures += 1
        state.last_error = event.outcome.reason
    return (_PROCEED,)


_RULES: dict[type[Event], Callable[[Progress, Any], Actions]] = {
    Turn: _turn,
    Full: _full,
    Chosen: _chosen,
    Delivered: _delivered,
    Failed: _failed,
    Buried: _buried,
    SentBeside: _sent_beside,
}

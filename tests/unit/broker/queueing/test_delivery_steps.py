"""The decisions of delivery, by tables: what state and event lead to what actions and what state."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.lifetimes.retry import RetryPolicy
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.queueing.delivery_events import (
    Acknowledge,
    Action,
    Buried,
    Bury,
    CatchUp,
    Chosen,
    Delivered,
    Drop,
    EndSubscription,
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
from hpwsn.broker.queueing.delivery_steps import JOURNAL_PAUSE, decide, send_size
from hpwsn.broker.queueing.progress import Progress
from hpwsn.notification import Notification
from hpwsn_client.wsn.soap.times import Duration

IDLE = Turn(
    live=True, excess=0, counted=True, resting=False, paused=False, beside=False, waiting=False, behind=False
)
EVERYTHING = IDLE._replace(
    excess=3, counted=False, resting=True, paused=True, beside=True, waiting=True, behind=True
)
POLICY = RetryPolicy(first=1.0, maximum=8.0, give_up_after=100.0, attempts=0)


@pytest.mark.parametrize(
    ("turn", "action"),
    [
        (IDLE, Settle()),
        (IDLE._replace(waiting=True), SendNext()),
        (IDLE._replace(waiting=True, behind=True), SendNext()),
        (IDLE._replace(behind=True), CatchUp()),
        (IDLE._replace(beside=True, waiting=True, behind=True), SendBeside()),
        (IDLE._replace(paused=True, beside=True, waiting=True, behind=True), Settle()),
        (IDLE._replace(resting=True, paused=True, beside=True, waiting=True), None),
        (EVERYTHING._replace(excess=0), CatchUp()),
        (EVERYTHING, Relieve(3)),
        (EVERYTHING._replace(live=False), Settle()),
    ],
)
def test_a_turn_leads_to_one_step_and_changes_nothing(turn: Turn, action: Action | None) -> None:
    state = Progress()
    assert tuple(decide(state, turn)) == (() if action is None else (action,))
    assert state == Progress()


@given(st.tuples(*[st.booleans()] * 7), st.integers(0, 5))
def test_a_busy_subscription_does_nothing_whatever_else_holds(flags: tuple[bool, ...], excess: int) -> None:
    turn = Turn(flags[0], excess, *flags[1:])
    assert not decide(Progress(busy=True), turn)


@pytest.mark.parametrize(
    ("event", "actions"),
    [
        (Full((), 5, "drop-oldest"), (CatchUp(),)),
        (Full((), 5, "dead-letter"), (CatchUp(),)),
        (
            Full((1, 2), 5, "drop-oldest"),
            (Drop((1, 2), "the queue was full"), Acknowledge((1, 2)), Proceed()),
        ),
        (Full((1, 2), 5, "dead-letter"), (Bury((1, 2), "more than 5 notifications waited"),)),
    ],
)
def test_a_full_queue_drops_or_buries_its_oldest(event: Full, actions: tuple[Action, ...]) -> None:
    assert tuple(decide(Progress(), event)) == actions


def note(accepted: float) -> Notification:
    return Notification(None, b"<m/>", 0, 4, accepted)


@pytest.mark.parametrize(
    ("times", "size", "unsent", "sent"),
    [
        ((10.0, 20.0, 30.0), 2, [], [1, 2]),
        ((1.0, 20.0, 30.0), 2, [1], [2, 3]),
        ((20.0, 1.0, 30.0), 1, [2], [1]),
        ((1.0, 2.0, 3.0), 2, [1, 2, 3], None),
    ],
)
def test_what_waited_too_long_leaves_and_as_many_as_fit_are_sent(
    times: tuple[float, ...], size: int, unsent: list[int], sent: list[int] | None
) -> None:
    notes = [note(accepted) for accepted in times]
    found = list(decide(Progress(), Chosen([1, 2, 3], notes, Duration(seconds=10), 15.0, size)))
    if unsent:
        told = found.pop(0)
        assert isinstance(told, Expire)
        assert told.found.unsent == unsent
        assert told.notifications == [notes[offset - 1] for offset in unsent]
    (last,) = found
    if sent is None:
        assert last == ProceedSoon()
    else:
        assert last == Send(sent, [notes[offset - 1] for offset in sent])


def test_a_delivery_is_acknowledged_and_ends_a_failure() -> None:
    state = Progress(busy=True, attempt=4, same=2, first_failure=1.0, alone=3, announced=True, delivered=7)
    assert tuple(decide(state, Delivered((5, 3)))) == (Acknowledge((5, 3)), Proceed())
    assert state == Progress(alone=1, delivered=9)


LOST = Outcome(OutcomeKind.LOST, reason="lost")
REFUSED_BY_IT = Outcome(OutcomeKind.CLIENT_ERROR, status=400, reason="no")
GONE = Outcome(OutcomeKind.CLIENT_ERROR, status=410, reason="gone")


def failed(outcome: Outcome, *attempt: tuple[int, float], **more: Any) -> Failed:
    event = Failed(outcome, attempt or ((1, 0.0),), POLICY, now=50.0, clock=50.0, random=1.0, ends=False)
    return event._replace(**more)


FAILING = Progress(busy=True, first_failure=40.0, failures=1, last_error="before")


@pytest.mark.parametrize(
    ("state", "event", "actions", "left"),
    [
        pytest.param(
            FAILING, failed(Outcome(OutcomeKind.CANCELLED)), (), replace(FAILING, busy=False), id="cancelled"
        ),
        pytest.param(
            FAILING,
            failed(Outcome(OutcomeKind.UNAVAILABLE, reason="journal")),
            (Rest(JOURNAL_PAUSE),),
            replace(FAILING, busy=False, last_error="journal"),
            id="the node's own failure",
        ),
        pytest.param(
            Progress(busy=True),
            failed(LOST),
            (NoteTrouble("lost"), Rest(1.0)),
            Progress(
                attempt=1, same=1, kind=LOST.kind, tried=1, first_failure=50.0, failures=1, last_error="lost"
            ),
            id="the first failure",
        ),
        pytest.param(
            replace(FAILING, attempt=2, same=2, kind=LOST.kind, tried=1),
            failed(LOST),
            (Rest(4.0),),
            Progress(
                attempt=3, same=3, kind=LOST.kind, tried=1, first_failure=40.0, failures=2, last_error="lost"
            ),
            id="pauses double",
        ),
        pytest.param(
            replace(FAILING, attempt=2, same=2, kind=LOST.kind, tried=1, announced=True),
            failed(LOST),
            (Rest(0.0),),
            Progress(
                attempt=3, same=3, kind=LOST.kind, tried=1, first_failure=40.0, failures=2, last_error="lost"
            ),
            id="the consumer announced itself meanwhile",
        ),
        pytest.param(
            replace(FAILING, attempt=2, same=2, kind=LOST.kind, tried=1),
            failed(REFUSED_BY_IT, (9, 0.0), (7, 0.0)),
            (Rest(4.0),),
            Progress(
                attempt=3,
                same=1,
                kind=REFUSED_BY_IT.kind,
                tried=9,
                alone=2,
                first_failure=40.0,
                failures=2,
                last_error="no",
            ),
            id="one of several may be disliked, and another kind of error counts anew",
        ),
        pytest.param(
            replace(FAILING, first_failure=-50.0, attempt=5, same=5, kind=LOST.kind, tried=9),
            failed(LOST, (9, -60.0), (7, -60.0)),
            (Bury([7, 9], "lost", LOST),),
            Progress(kind=LOST.kind, tried=9, first_failure=-50.0, failures=2, last_error="lost"),
            id="what was tried long enough is buried, in any order",
        ),
        pytest.param(
            replace(FAILING, first_failure=-50.0, attempt=0, same=5, kind=GONE.kind, tried=9),
            failed(REFUSED_BY_IT, (7, -60.0), (9, -60.0)),
            (Rest(1.0),),
            Progress(
                attempt=1,
                same=6,
                kind=GONE.kind,
                tried=9,
                alone=2,
                first_failure=-50.0,
                failures=2,
                last_error="no",
            ),
            id="several that were answered are tried alone first",
        ),
        pytest.param(
            FAILING,
            failed(GONE, ends=True),
            (EndSubscription(),),
            replace(FAILING, busy=False, failures=2, last_error="gone"),
            id="a consumer that is gone ends the subscription",
        ),
        pytest.param(
            FAILING,
            failed(GONE),
            (Rest(1.0),),
            Progress(
                attempt=1, same=1, kind=GONE.kind, tried=1, first_failure=40.0, failures=2, last_error="gone"
            ),
            id="or is retried, where subscriptions are kept",
        ),
    ],
)
def test_a_failure(state: Progress, event: Failed, actions: tuple[Action, ...], left: Progress) -> None:
    state = replace(state)
    assert tuple(decide(state, event)) == actions
    assert state == left


@pytest.mark.parametrize(
    ("stored", "actions", "alone"),
    [(True, (Passed((1, 2)), Proceed()), 1), (False, (Rest(JOURNAL_PAUSE),), 3)],
)
def test_dead_letters_are_passed_once_they_are_stored(
    stored: bool, actions: tuple[Action, ...], alone: int
) -> None:
    state = Progress(busy=True, alone=3)
    assert tuple(decide(state, Buried((1, 2), stored))) == actions
    assert state == Progress(alone=alone)


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        (Outcome(OutcomeKind.DELIVERED), Progress(delivered=2)),
        (LOST, Progress(attempt=3, first_failure=1.0, failures=1, last_error="lost")),
    ],
)
def test_a_send_beside_the_queue_is_tried_once(outcome: Outcome, left: Progress) -> None:
    state = Progress(busy=True, attempt=3, first_failure=1.0)
    assert tuple(decide(state, SentBeside(outcome, 2))) == (Proceed(),)
    assert state == left


@pytest.mark.parametrize(("alone", "size"), [(0, 64), (1, 1), (9, 1)])
def test_what_was_refused_together_is_sent_one_by_one(alone: int, size: int) -> None:
    assert send_size(Progress(alone=alone), 64) == size


outcomes = st.sampled_from([LOST, REFUSED_BY_IT, GONE, Outcome(OutcomeKind.UNAVAILABLE), None])


@given(st.lists(outcomes, max_size=40), st.booleans())
def test_no_outcome_of_a_send_leaves_a_subscription_that_does_nothing(
    found: list[Outcome | None], ends: bool
) -> None:
    """Each outcome leads to a next turn, a dead letter, or the end; and the machine is free for it."""
    state, now = Progress(), 0.0
    for outcome in found:
        state.busy, now = True, now + 30
        event: Any = Delivered((1,)) if outcome is None else failed(outcome, (1, 0.0), now=now, clock=now)
        if outcome is not None:
            event = event._replace(ends=ends)
        actions = decide(state, event)
        assert not state.busy
        assert isinstance(actions[-1], Proceed | Rest | Bury | EndSubscription)

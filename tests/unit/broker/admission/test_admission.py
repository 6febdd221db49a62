"""Admission: what is asked of runs, in which order, and what becomes of message ids."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hpwsn.broker.admission.admission import CLIENT, Admission, Limit, Source, runs_of
from hpwsn.broker.admission.message_ids import Span
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.store.records import Arrival
from hpwsn.notification import RELIABLE, Run, count_of
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE, NotificationMessage
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression
from tests.patience import PATIENCE
from tests.runs import run_of


class Backbone:
    """Gives offsets from 10 on, or fails."""

    def __init__(self) -> None:
        self.fails = False
        self.sent: list[Run] = []

    async def send(self, runs: Sequence[Run]) -> int:
        if self.fails:
            raise JournalUnavailable("no disk")
        self.sent += runs
        return 10


class Registrations:
    """Asked for each beginning once, as long as the generation stays the same."""

    def __init__(self) -> None:
        self.required = False
        self.generation = 0
        self.asked: list[tuple[bytes, str | None]] = []
        self.until = 2000.0

    def check_publisher(self, before: bytes, registration: str | None) -> float:
        self.asked.append((before, registration))
        if before == b"<stranger/>":
            raise faults.PublisherRegistrationRejectedFault("not registered")
        return self.until


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Way:
    """An admission with all that is around it."""

    def __init__(self) -> None:
        self.backbone, self.registrations, self.clock = Backbone(), Registrations(), Clock()
        self.tree: TopicTree[object] = TopicTree()
        self.stored: list[Run] = []
        self.admission = Admission(
            tree=self.tree,  # type: ignore[arg-type]
            backbone=self.backbone,  # type: ignore[arg-type]
            store=self.store,
            clock=self.clock,
            id_window=60.0,
            content_limit=1000,
            registrations=self.registrations,
        )

    def store(self, runs: Sequence[Run], arrival: Arrival | None) -> asyncio.Future[int]:
        self.stored += runs
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(5)
        return done


def full(runs: Sequence[Run]) -> None:
    raise faults.Busy("the queue is full", retry_after=1)


async def test_a_repetition_is_told_where_the_first_one_is() -> None:
    admission = Way().admission
    plain, once = [run_of(None, b"<x/>")], [run_of(None, b"<x/>", b"<y/>", message_id="a")]
    assert admission.admit(CLIENT, plain) is None
    assert admission.admit(CLIENT, once) is None
    repeated = admission.admit(CLIENT, once)
    assert repeated is not None
    assert not repeated.done()
    assert await admission.append_batch([*plain, *once])
    assert await repeated == Span(11, 12)
    assert (admission.accepted, admission.repeated) == (3, 2)


async def test_an_id_over_several_runs_is_found_where_all_of_them_are() -> None:
    admission = Way().admission
    plain = [run_of(None, b"<x/>")]
    once = [run_of("a", b"<a/>", b"<b/>", message_id="a"), run_of("b", b"<c/>", message_id="a")]
    admission.admit(CLIENT, plain)
    assert admission.admit(CLIENT, once) is None
    repeated = admission.admit(CLIENT, once)
    assert repeated is not None
    assert await admission.append_batch([*plain, *once, *plain])
    assert await repeated == Span(11, 13)
    assert (admission.accepted, admission.repeated) == (5, 3)


async def test_an_id_whose_notifications_were_not_stored_is_new_again() -> None:
    way = Way()
    admission, once = way.admission, [run_of(None, b"<x/>", message_id="a")]
    assert admission.admit(CLIENT, once) is None
    repeated = admission.admit(CLIENT, once)
    way.backbone.fails = True
    assert not await admission.append_batch(once)
    assert repeated is not None
    assert isinstance(repeated.exception(), Exception)
    assert admission.admit(CLIENT, once) is None
    way.backbone.fails = False
    assert await asyncio.wait_for(admission.append_batch(once), PATIENCE)


async def test_a_repetition_gets_the_first_outcome_even_when_queues_are_full() -> None:
    admission, once = Way().admission, [run_of(None, b"<x/>", message_id="a")]
    assert admission.admit(CLIENT, once) is None
    assert await admission.append_batch(once)
    admission.limits.append(Limit(full))
    repeated = admission.admit(CLIENT, once)
    assert repeated is not None
    assert await repeated == Span(10, 10)


async def test_an_id_is_not_claimed_where_a_queue_is_full() -> None:
    admission, once = Way().admission, [run_of(None, b"<x/>", message_id="a")]
    admission.limits.append(Limit(full))
    with pytest.raises(faults.Busy):
        admission.admit(CLIENT, once)
    assert not admission.knows("a")
    admission.limits.clear()
    assert admission.admit(CLIENT, once) is None


async def test_published_messages_fail_with_busy_and_are_new_again() -> None:
    way = Way()
    way.backbone.fails = True
    message = NotificationMessage(None, b"<x/>")
    with pytest.raises(faults.Busy, match="no disk"):
        await way.admission.publish([message], message_id="a")
    assert way.admission.refused == 1
    way.backbone.fails = False
    assert await way.admission.publish([message], message_id="a") == Span(10, 10)
    assert await way.admission.publish([message], message_id="a") == Span(10, 10)
    assert (way.admission.accepted, way.admission.repeated) == (1, 1)


async def test_what_a_peer_sends_meets_no_queue_limit_and_its_id_is_known_afterwards() -> None:
    way = Way()
    way.admission.limits.append(Limit(full))
    runs = [run_of("a", b"<x/>", message_id="a")]
    assert await way.admission.store_from_peer(runs, Arrival()) == 5
    await asyncio.sleep(0)
    assert way.stored == runs
    assert way.admission.knows("a")


async def test_admission_completes_a_run() -> None:
    way = Way()
    topic = Topic.parse("a:b")
    way.tree.retain(topic, 1)
    way.admission.carried = RELIABLE
    run = run_of(Topic.parse("a:b"), b"<x/>", routing=RELIABLE | 2, time=0.0)
    way.admission.admit(CLIENT, [run])
    assert run.topic is way.tree.canonical(topic)
    assert (run.time, run.routing) == (1000.0, RELIABLE)


async def test_what_is_posted_to_a_pull_point_needs_no_registration_and_stays_here() -> None:
    way = Way()
    way.registrations.required = True
    way.admission.carried = RELIABLE
    run = run_of(None, b"<x/>", before=b"<stranger/>", target="point", routing=RELIABLE)
    assert way.admission.admit(CLIENT, [run]) is None
    assert run.routing == 0


async def test_a_registration_is_asked_for_once_until_a_registration_changes() -> None:
    way = Way()
    way.registrations.required = True
    for _ in range(3):
        way.admission.admit(CLIENT, [run_of(None, b"<x/>", before=b"<known/>")])
    assert way.registrations.asked == [(b"<known/>", None)]
    way.registrations.generation += 1
    way.admission.admit(CLIENT, [run_of(None, b"<x/>", before=b"<known/>")])
    assert len(way.registrations.asked) == 2
    way.clock.now = way.registrations.until
    way.admission.admit(CLIENT, [run_of(None, b"<x/>", before=b"<known/>")])
    assert len(way.registrations.asked) == 3
    way.admission.admit(Source(registration="r"), [run_of(None, b"<x/>", before=b"<known/>")])
    assert way.registrations.asked[-1] == (b"<known/>", "r")


async def test_a_source_that_the_operator_configured_needs_no_registration() -> None:
    way = Way()
    way.registrations.required = True
    way.admission.admit(Source(configured=True), [run_of(None, b"<x/>", before=b"<stranger/>")])
    with pytest.raises(faults.PublisherRegistrationRejectedFault):
        way.admission.admit(CLIENT, [run_of(None, b"<x/>", before=b"<stranger/>")])


async def test_a_refusal_is_asked_for_every_time() -> None:
    way = Way()
    way.registrations.required = True
    for _ in range(2):
        with pytest.raises(faults.PublisherRegistrationRejectedFault):
            way.admission.admit(CLIENT, [run_of(None, b"<x/>", before=b"<stranger/>")])
    assert len(way.registrations.asked) == 2


@pytest.mark.parametrize("over", [0, 1])
async def test_a_notification_has_at_most_as_many_bytes_as_the_limit(over: int) -> None:
    admission = Way().admission
    payload = b"<" + b"x" * (1000 - len(MESSAGE_CLOSE) - 3 + over) + b"/>"
    runs = [run_of(None, payload, b"<y/>")]
    if over:
        with pytest.raises(faults.TooLarge, match="1001 bytes"):
            admission.admit(CLIENT, runs)
    else:
        admission.admit(CLIENT, runs)


async def test_a_topic_outside_of_a_fixed_tree_is_refused() -> None:
    way = Way()
    fixed: TopicTree[object] = TopicTree(fixed=True)
    fixed.add(Topic.parse("known"))
    way.admission._tree = fixed  # type: ignore[assignment]
    way.admission.admit(CLIENT, [run_of("known", b"<x/>")])
    with pytest.raises(faults.TopicNotSupportedFault):
        way.admission.admit(CLIENT, [run_of("known", b"<x/>"), run_of("other", b"<x/>")])


def test_messages_in_a_row_that_differ_in_their_payloads_only_are_one_run() -> None:
    a, b = (TopicExpression.of_message(Topic.parse(name)) for name in ("a", "b"))
    again = TopicExpression.of_message(Topic.parse("a"))
    messages = [NotificationMessage(on, b"<n>%d</n>" % n) for n, on in enumerate((a, a, again, b, a, None))]
    runs = runs_of(messages, "id", None, RELIABLE)
    assert [run.size for run in runs] == [3, 1, 1, 1]
    assert [each.payload for run in runs for each in run] == [message.payload for message in messages]
    assert count_of(runs) == 6
    assert {(run.message_id, run.routing) for run in runs} == {("id", RELIABLE)}


def test_traces_are_as_many_as_messages_or_none() -> None:
    messages = [NotificationMessage(None, b"<n/>"), NotificationMessage(None, b"<n/>")]
    traces = [f"00-{number:032x}-{1:016x}-01" for number in (1, 2, 3)]
    assert [run.trace for run in runs_of(messages, traces=traces[:2])] == traces[:2]
    for wrong in (traces[:1], traces):
        with pytest.raises(ValueError, match="zip"):
            runs_of(messages, traces=wrong)


async def test_a_limit_is_asked_only_while_it_applies() -> None:
    admission, queues = Way().admission, set()  # type: ignore[var-annotated]
    admission.limits.append(Limit(full, applies=queues))
    assert admission.admit(CLIENT, [run_of(None, b"<x/>")]) is None
    queues.add("a full one")
    with pytest.raises(faults.Busy):
        admission.admit(CLIENT, [run_of(None, b"<x/>")])


async def test_a_limit_for_some_routing_is_asked_for_that_routing_only() -> None:
    admission = Way().admission
    admission.carried = RELIABLE
    admission.limits.append(Limit(full, routing=RELIABLE))
    assert admission.admit(CLIENT, [run_of(None, b"<x/>")]) is None
    with pytest.raises(faults.Busy):
        admission.admit(CLIENT, [run_of(None, b"<x/>", routing=RELIABLE)])


async def test_an_id_stays_claimed_until_its_append_ends_however_long_that_takes() -> None:
    way = Way()
    admission, once = way.admission, [run_of(None, b"<x/>", message_id="a")]
    assert admission.admit(CLIENT, once) is None
    way.clock.now += 1000.0
    repeated = admission.admit(CLIENT, once)
    assert repeated is not None
    assert await admission.append_batch(once)
    assert await repeated == Span(10, 10)

"""Admission: the only way in for notifications, whichever door or link they come by.

`admit` checks runs by what is known of their source, in this order: registration, topic and size; then the
message id, so that a repetition gets the first outcome even when queues are full; then the queue limits, and
only then is the id claimed. `append` hands the runs to the backbone, and settles the claim or releases it. A
request is taken whole or not at all.

What is accepted on an internal topic gets the target INTERNAL, by which the journal keeps it apart and every
commit listener passes over it. It stays internal even if its topic becomes public later.

A peer node has accepted what it sends: its runs are checked for form when they are decoded, their ids are
noted, and queue limits do not apply.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple, Protocol

from hpwsn.backbone.interface import Backbone
from hpwsn.background import in_thread
from hpwsn.broker.admission.message_ids import MessageIds, Outcome, Span
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.errors import BackboneUnavailable, JournalUnavailable
from hpwsn.journal.store.records import Arrival, MessageId
from hpwsn.notification import END, INTERNAL, LARGE, Run, count_of, split_payloads, with_large_apart
from hpwsn.topics.tree.tree import TopicTree
from hpwsn.tracing.span_hooks import Spans
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE, NotificationMessage, encode_content
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

RETRY_AFTER = 1
"""Seconds that a publisher is asked to wait when the journal cannot take more."""
MOST_DECISIONS = 10_000
LONGEST_REMEMBERED = 2048
"""Bytes of a run's beginning for which a decision is cached."""

ANONYMOUS = "anonymous"
DOORS = ("soap", "json", "onvif", "original", "peer", "backbone", "sensors")
"""The ways in by which notifications are counted.

`peer` is a node of the original; `sensors` are readings, and the results of virtual sensors.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """Who brings runs: a principal, the registration that the request was sent to, if any, and the door.

    A source that the operator configured, such as an MQTT broker, needs no registration.
    """

    principal: str = ANONYMOUS
    registration: str | None = None
    door: str = "soap"
    configured: bool = False


CLIENT = Source()
"""A client that shows nothing."""


class Decision(NamedTuple):
    """That a source may publish runs with some beginning, on the topic that was asked for.

    It holds until a time, and as long as registrations and topics do not change.
    """

    source: Source
    asked: Topic | None
    topic: Topic | None
    """The tree's own instance of the topic."""
    target: str | None
    """INTERNAL if the topic is internal."""
    generation: int
    version: int
    until: float


class RegistrationCheck(Protocol):
    """Who may publish what, by registration."""

    @property
    def required(self) -> bool:
        """Whether a publisher needs a registration."""

    generation: int
    """Changes with every registration, so that callers can drop cached answers."""

    def check_publisher(self, before: bytes, registration: str | None) -> float:
        """Raise the fault for runs with that beginning; else until when the answer holds."""


class Limit(NamedTuple):
    """A bound on what waits: `check` raises Busy for runs that would exceed it.

    It is asked only while `applies` is true, and where `routing` has flags, only for runs with one of them.
    With `large` it is asked only for requests with a large notification.
    """

    check: Callable[[Sequence[Run]], None]
    applies: object = True
    routing: int = 0
    large: bool = False


class Admission:
    """Takes notifications in from every door and link."""

    def __init__(
        self,
        *,
        tree: TopicTree[Subscriber],
        backbone: Backbone,
        store: Callable[[Sequence[Run], Arrival | None], asyncio.Future[int]],
        clock: Callable[[], float],
        id_window: float,
        content_limit: int,
        registrations: RegistrationCheck,
    ) -> None:
        self._tree = tree
        self._backbone = backbone
        self._store = store
        self._clock = clock
        self._content_limit = content_limit
        self._registrations = registrations
        self._ids = MessageIds(id_window)
        self._short = content_limit - len(MESSAGE_CLOSE)
        """Bytes of a run below which no notification in it is too large."""
        self._decisions: dict[bytes, Decision] = {}
        """By the beginning of a run."""
        self._trouble: str | None = None
        self.limits: list[Limit] = []
        """Asked for requests of clients, in order."""
        self.spans: Spans | None = None
        self.carried = 0
        """Which routing flags have a meaning here: none where this node is alone."""
        self.counts = {door: {"accepted": 0, "repeated": 0, "refused": 0} for door in DOORS}
        """Notifications by door and outcome."""

    async def publish(
        self,
        messages: Sequence[NotificationMessage],
        *,
        source: Source = CLIENT,
        message_id: str | None = None,
        target: str | None = None,
        routing: int = 0,
        traces: Sequence[str | None] = (),
    ) -> Span:
        """Where the notifications are, once they can no longer be lost; raises a fault if none was taken.

        `traces` has that of each message, or nothing.
        """
        large = any(len(message.payload) >= LARGE for message in messages)
        try:
            arguments = messages, message_id, target, routing, traces
            runs = await in_thread(runs_of, *arguments) if large else runs_of(*arguments)
        except faults.SoapFault:
            self.count(source.door, "refused", len(messages))
            raise
        return await self.publish_runs(runs, source)

    async def publish_runs(self, runs: Sequence[Run], source: Source = CLIENT) -> Span:
        """Like `publish`, for the runs of one request, which have the same message id or none."""
        if any(not run.large and len(run.payloads) >= LARGE for run in runs):
            runs = await in_thread(with_large_apart, runs)
        try:
            first = self.admit(source, runs)
        except faults.SoapFault:
            self.count(source.door, "refused", count_of(runs))
            raise
        if first is None and runs[0].message_id is None:
            return await self.append(runs, source)
        if first is None:
            # Others who repeat the id wait for this append, also when this caller is cancelled.
            first = asyncio.ensure_future(self.append(runs, source))
            first.add_done_callback(_retrieve)
        return await asyncio.shield(first)

    def admit(self, source: Source, runs: Sequence[Run]) -> Outcome | None:
        """Complete the runs of one request and claim their id, for `append`; else raise the fault.

        For a repetition the outcome of the first request, and nothing is claimed.
        """
        now = self._clock()
        for run in runs:
            self._check(source, run, now)
            run.time = now
        id_ = runs[0].message_id
        if id_ is not None:
            known = self._ids.find(id_, now)
            if known is not None:
                self.count(source.door, "repeated", count_of(runs))
                return known
        for check, applies, routing, large in self.limits:
            if applies and (not routing or runs[0].routing & routing):
                if large and not any(run.large for run in runs):
                    continue
                check(runs)
        if id_ is not None:
            self._ids.claim(id_, now)
        if self.spans is not None:
            self.spans.received(runs)
        return None

    def admit_own(self, run: Run) -> None:
        """Complete a run that this node makes itself, for `append`; raise the fault for an unknown topic.

        Neither registrations nor queue limits apply to it.
        """
        self.check_form(run)
        self.conceal(run)
        run.time = self._clock()

    def _check(self, source: Source, run: Run, now: float) -> None:
        if run.target is not None:
            # What is posted to a pull point is not published: it needs no registration and stays here.
            run.routing = 0
            self.check_form(run)
            return
        run.routing &= self.carried
        known = self._decisions.get(run.before)
        if (
            known is None
            or known.generation != self._registrations.generation
            or known.version != self._tree.version
            or now >= known.until
            or (known.asked is not run.topic and known.asked != run.topic)
            or (known.source is not source and known.source != source)
        ):
            known = self._decide(source, run)
        run.topic = known.topic
        if known.target is not None:
            self.conceal(run)
        if run.large or len(run.before) + len(run.payloads) > self._short:
            self._check_size(run)

    def _decide(self, source: Source, run: Run) -> Decision:
        """Raise the fault, or remember that this source may publish runs with that beginning."""
        registrations = self._registrations
        until = math.inf
        if source.registration is not None or (registrations.required and not source.configured):
            until = registrations.check_publisher(run.before, source.registration)
        topic = None if run.topic is None else self._tree.canonical(run.topic)
        target = INTERNAL if topic is not None and self._tree.is_internal(topic) else None
        decision = Decision(
            source, run.topic, topic, target, registrations.generation, self._tree.version, until
        )
        if len(run.before) <= LONGEST_REMEMBERED:
            if len(self._decisions) >= MOST_DECISIONS:
                self._decisions.clear()
            self._decisions[run.before] = decision
        return decision

    def conceal(self, run: Run) -> None:
        """Keep a run from all but jobs, here and at other nodes, if its topic is internal."""
        if run.target is None and run.topic is not None and self._tree.is_internal(run.topic):
            run.target, run.routing = INTERNAL, 0

    def check_form(self, run: Run) -> None:
        """Raise the fault for an unknown topic or a notification that is too large."""
        if run.topic is not None:
            run.topic = self._tree.canonical(run.topic)
        self._check_size(run)

    def _check_size(self, run: Run) -> None:
        longest = run.content_size
        if longest > self._content_limit and run.size > 1:
            longest = len(run.before) + max(map(len, split_payloads(run.payloads))) + len(MESSAGE_CLOSE)
        if longest > self._content_limit:
            raise faults.TooLarge(
                f"a message has {longest} bytes with its escapes and namespaces, and"
                f" {self._content_limit} are accepted (server.body_limit)"
            )

    async def append(self, runs: Sequence[Run], source: Source = CLIENT) -> Span:
        """Store runs that were admitted; returns when they can no longer be lost, and raises Busy else."""
        try:
            first = await self._backbone.send(runs)
        except (JournalUnavailable, BackboneUnavailable) as error:
            self._note_trouble(str(error))
            fault = faults.Busy(f"nothing was stored: {error}", retry_after=RETRY_AFTER)
            self._fail(runs, fault, source)
            raise fault from error
        except Exception as error:
            self._fail(runs, error, source)
            raise
        return self._stored(first, runs, source)

    def _fail(self, runs: Sequence[Run], error: Exception, source: Source) -> None:
        if self.spans is not None:
            self.spans.stored(runs, str(error))
        self._ids.release(runs, error)
        self.count(source.door, "refused", count_of(runs))

    async def append_batch(self, runs: Sequence[Run]) -> bool:
        """Whether runs of several requests are stored; if not, each request is to be published alone.

        Publishing it alone meets the same error, and has the fault and the line in the log for it.
        """
        try:
            first = await self._backbone.send(runs)
        except Exception as error:
            if self.spans is not None:
                self.spans.stored(runs, str(error))
            self._ids.release(runs, faults.Busy("nothing was stored; try again", retry_after=RETRY_AFTER))
            return False
        self._stored(first, runs, CLIENT)
        return True

    def _stored(self, first: int | None, runs: Sequence[Run], source: Source) -> Span:
        if self._ids.claims:
            self._ids.settle(first, runs)
        if self.spans is not None:
            self.spans.stored(runs)
        number = sum([run.size for run in runs])
        self.counts[source.door]["accepted"] += number
        if self._trouble is not None:
            self._note_trouble(None)
        return Span(first, None if first is None else first + number - 1)

    def store_from_peer(self, runs: Sequence[Run], arrival: Arrival | None) -> asyncio.Future[int]:
        """Store what another node accepted and sent here; the future has the offset of the first."""
        for run in runs:
            self.conceal(run)
        if self.spans is not None:
            self.spans.received(runs, from_node=True)
        stored = self._store(runs, arrival)
        if self.spans is not None:
            stored.add_done_callback(lambda ended: self._end_spans(runs, ended))
        ids = {run.message_id for run in runs if run.message_id is not None}
        if ids:
            stored.add_done_callback(lambda ended: self._note_ids(ended, ids))
        return stored

    def _end_spans(self, runs: Sequence[Run], ended: asyncio.Future[int]) -> None:
        assert self.spans is not None
        error = "cancelled" if ended.cancelled() else ended.exception()
        self.spans.stored(runs, "" if error is None else str(error))

    def _note_ids(self, ended: asyncio.Future[int], ids: Iterable[str]) -> None:
        if not ended.cancelled() and ended.exception() is None:
            for id_ in ids:
                self._ids.note(id_, self._clock())

    def claim(self, message_id: str) -> bool:
        """Take an id for what came by the backbone, until settle_arrived; False if the id is known."""
        now = self._clock()
        if self._ids.find(message_id, now) is not None:
            return False
        self._ids.claim(message_id, now)
        return True

    def settle_arrived(self, first: int, runs: Sequence[Run]) -> None:
        """Runs that came by the backbone, with claimed ids, are stored from offset `first` on."""
        self._ids.settle(first, runs)
        self.count("backbone", "accepted", count_of(runs))

    def count(self, door: str, outcome: str, number: int) -> None:
        """Add to the counts."""
        self.counts[door][outcome] += number

    @property
    def accepted(self) -> int:
        """How many notifications were stored, at all doors."""
        return self._total("accepted")

    @property
    def repeated(self) -> int:
        """How many had the id of an earlier request."""
        return self._total("repeated")

    @property
    def refused(self) -> int:
        """How many were not stored."""
        return self._total("refused")

    def _total(self, outcome: str) -> int:
        return sum([count[outcome] for count in self.counts.values()])

    def knows(self, message_id: str | None) -> bool:
        """Whether a request of that id would be a repetition."""
        return message_id is not None and self._ids.find(message_id, self._clock()) is not None

    def restore(self, ids: Iterable[MessageId]) -> None:
        """Take up the message ids that the journal still knows."""
        self._ids.restore(ids)

    def _note_trouble(self, reason: str | None) -> None:
        """Write to the log when the journal begins to refuse, and when it takes notifications again."""
        if reason is None:
            log.warning("notifications are accepted again")
        elif self._trouble is None:
            log.error("notifications are refused: %s", reason)
        self._trouble = reason


def runs_of(
    messages: Iterable[NotificationMessage],
    message_id: str | None = None,
    target: str | None = None,
    routing: int = 0,
    traces: Sequence[str | None] = (),
) -> list[Run]:
    """Parsed messages as runs: those in a row that differ in their payloads only are one.

    `traces` has as many as there are messages, or nothing; ValueError otherwise.
    """
    runs: list[Run] = []
    payloads: list[bytes] = []
    before: NotificationMessage | None = None
    with_traces = zip(messages, traces, strict=True) if traces else zip(messages, repeat(None), strict=False)
    for message, trace in with_traces:
        if before is None or not _opens_alike(message, before) or trace != runs[-1].trace:
            _close(runs, payloads)
            runs.append(open_run(message, message_id, target, routing, trace))
            before = message
        payloads.append(message.payload)
    _close(runs, payloads)
    return runs


def _opens_alike(message: NotificationMessage, other: NotificationMessage) -> bool:
    same_topic = message.topic is other.topic or message.topic == other.topic
    return same_topic and message.producer == other.producer


def open_run(
    message: NotificationMessage,
    message_id: str | None = None,
    target: str | None = None,
    routing: int = 0,
    trace: str | None = None,
) -> Run:
    """A run without payloads, for notifications that differ from this one only in the payload."""
    topic = None if message.topic is None else message.topic.topic
    if message.topic is not None and topic is None:
        raise faults.InvalidTopicExpressionFault(
            f"a notification is on one topic, and {message.topic.text!r} may mean several; name one"
        )
    content, start, _ = encode_content(message)
    return Run(topic, content[:start], b"", 0, 0.0, message_id, target, routing, trace)


def _close(runs: list[Run], payloads: list[bytes]) -> None:
    if runs:
        runs[-1].payloads, runs[-1].size = END.join((*payloads, b"")), len(payloads)
        payloads.clear()


def _retrieve(ended: asyncio.Future[Span]) -> None:
    """Look at the error of an append that perhaps nobody waits for any more."""
    if not ended.cancelled():
        ended.exception()

"""Demand-based publishing: this node subscribes at a publisher only while there is interest in its topics.

Follows WS-BrokeredNotification 1.3, section 4.3 (Demand). Each topic of a registration is a target. The first
interest that could match it makes this node subscribe or resume at the publisher. When there was no interest
for `registrations.linger` seconds, the upstream subscription is paused, or ended if the publisher cannot
pause. Upstream subscriptions have a lease, which is renewed at half time while there is interest; a paused
one expires. Failed calls are retried with growing pauses while the registration exists. The state is in the
journal, so that a restart continues it. A pause is stored before its request, other changes after the answer.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field

from hpwsn.broker.lifetimes.retry import RetryPolicy
from hpwsn.broker.push.consumer_connection import TRUST
from hpwsn.broker.registrations.interest_follower import InterestFollower
from hpwsn.broker.registrations.registered_publisher import Publishers, Registration, is_gone
from hpwsn.errors import JournalUnavailable
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import UpstreamRecord
from hpwsn_client.errors import BadReply, CertificateRefused, HpwsnClientError
from hpwsn_client.tls import certificate_problem
from hpwsn_client.wsn.soap.addressing import EndpointReference, encode_epr, parse_epr
from hpwsn_client.wsn.soap.faults import Busy, SoapFault
from hpwsn_client.wsn.soap.names import wsnt
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression

log = logging.getLogger(__name__)

CALLS = 32
"""Maximum number of concurrent calls to publishers."""
UNSUBSCRIBE_ATTEMPTS = 5
"""Attempts to unsubscribe at a publisher whose registration has ended."""
SHORTEST_RENEWAL = 0.5
"""Minimum seconds between two renewals, even if the publisher grants a shorter lease."""


@dataclass(slots=True)
class Upstream:
    """A subscription of this node at a publisher."""

    reference: EndpointReference
    terminates: float | None
    """On the wall clock; None for no end."""
    renew_at: float = 0.0
    """On the loop's clock."""
    paused: bool = False
    settled: bool = False
    """Whether the publisher has confirmed the state since this node started."""


@dataclass(slots=True, eq=False)
class Target:
    """One topic of a registration on demand, None for all its topics; compared by identity."""

    registration: Registration
    place: int
    expression: TopicExpression | None
    upstream: Upstream | None = None
    ended: bool = False
    idle_since: float = 0.0
    attempt: int = 0
    last_error: str | None = None
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None


Step = Callable[[Target], Awaitable[None]]


class Demand:
    """Follows interests and registrations, and manages the subscriptions at publishers accordingly."""

    def __init__(
        self,
        *,
        journal: Journal,
        publishers: Publishers,
        clock: Callable[[], float],
        retry: RetryPolicy,
        lifetime: float,
        linger: float,
        simple_subtree: bool,
    ) -> None:
        self._journal = journal
        self._publishers = publishers
        self._clock = clock
        self._retry = retry
        self._lifetime = lifetime
        self._linger = linger
        self.interests: InterestFollower[Target] = InterestFollower(self._interest_changed, simple_subtree)
        self._targets: dict[Registration, list[Target]] = {}
        self._unsubscribing: set[Target] = set()
        self._remembered: dict[tuple[str, int], UpstreamRecord] = {}
        self._slots = asyncio.Semaphore(CALLS)
        self._running = False
        self.failures = 0

    # Registrations

    def remember(self, records: Iterable[UpstreamRecord]) -> None:
        """Load the stored upstream subscriptions; call it before `begin`."""
        self._remembered = {(record.registration, record.place): record for record in records}

    def begin(self, registration: Registration) -> None:
        """Follow the interests in a registration's topics, if it is on demand."""
        if not registration.demand:
            return
        now = asyncio.get_running_loop().time()
        targets = [
            Target(registration, place, topic, idle_since=now) for place, topic in _places(registration)
        ]
        self._targets[registration] = targets
        for target in targets:
            target.upstream = self._recall(target)
            self.interests.add(target, target.expression)
            self._wake(target)

    def repeat(self, registration: Registration) -> None:
        """Check the upstream subscriptions of a publisher that registers again: it may have lost them."""
        for target in self._targets.get(registration, ()):
            target.attempt = 0
            if target.upstream is not None:
                target.upstream.settled = False
            target.hurry.set()
            self._wake(target)

    def end(self, registration: Registration) -> None:
        """Unsubscribe at the publisher of a registration that has ended."""
        for target in self._targets.pop(registration, ()):
            self.interests.discard(target)
            target.ended, target.attempt = True, 0
            self._unsubscribing.add(target)
            target.hurry.set()
            self._wake(target)

    def _recall(self, target: Target) -> Upstream | None:
        record = self._remembered.pop((target.registration.id, target.place), None)
        if record is None:
            return None
        reference = parse_epr(parse_xml(record.reference, STORED_LIMITS))
        return Upstream(reference, record.terminates, paused=record.paused)

    def _interest_changed(self, target: Target) -> None:
        target.idle_since = asyncio.get_running_loop().time()
        self._wake(target)

    # Work

    def start(self) -> None:
        """Start to call publishers."""
        self._running = True
        self.interests.begin()
        for targets in self._targets.values():
            for target in targets:
                self._wake(target)

    async def close(self) -> None:
        """Stop at once; upstream subscriptions stay."""
        self._running = False
        everything = [*self._unsubscribing, *(each for some in self._targets.values() for each in some)]
        tasks = [target.task for target in everything if target.task is not None]
        for target in everything:
            if target.timer is not None:
                target.timer.cancel()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.interests.close()
        await self._publishers.close()

    def figures(self) -> dict[str, int]:
        """The numbers of targets, of active upstream subscriptions, and of failed calls."""
        targets = [target for some in self._targets.values() for target in some]
        active = sum(1 for t in targets if t.upstream is not None and not t.upstream.paused)
        return {"topics_on_demand": len(targets), "topics_subscribed": active, "failures": self.failures}

    def describe(self, registration: Registration) -> list[dict[str, object]]:
        """The state of each topic of a registration, for an operator."""
        return [
            {
                "topic": None if target.expression is None else target.expression.text,
                "wanted": self.interests.wanted(target),
                "state": _state(target.upstream),
                "subscription": target.upstream and target.upstream.reference.address,
                "last_error": target.last_error,
            }
            for target in self._targets.get(registration, ())
        ]

    def _wake(self, target: Target) -> None:
        if self._running and target.task is None and self._step(target) is not None:
            target.task = asyncio.get_running_loop().create_task(self._work(target))
        elif self._running and target.task is None:
            self._rest(target)

    async def _work(self, target: Target) -> None:
        """Take steps until the upstream subscription is in the wanted state."""
        try:
            while (step := self._step(target)) is not None:
                if await self._attempt(target, step):
                    continue
                if target.ended and target.attempt >= UNSUBSCRIBE_ATTEMPTS:
                    break
                await self._wait(target)
        finally:
            target.task = None
            if self._running:
                self._rest(target)

    def _step(self, target: Target) -> Step | None:
        """The next step, or None if the upstream subscription is in the wanted state."""
        upstream, now = target.upstream, asyncio.get_running_loop().time()
        if upstream is not None and upstream.terminates is not None and upstream.terminates <= self._clock():
            return self._forget
        if target.ended:
            return None if upstream is None else self._unsubscribe
        if self.interests.wanted(target):
            if upstream is None:
                return self._subscribe
            if upstream.paused:
                return self._resume
            return None if upstream.settled and now < upstream.renew_at else self._renew
        if upstream is None or (upstream.paused and upstream.settled):
            return None
        return self._pause if now >= target.idle_since + self._linger else None

    def _rest(self, target: Target) -> None:
        """Set the timer for the next renewal, pause or expiry."""
        if target.timer is not None:
            target.timer.cancel()
            target.timer = None
        upstream, loop = target.upstream, asyncio.get_running_loop()
        if target.ended or upstream is None:
            self._unsubscribing.discard(target)
            return
        if self.interests.wanted(target):
            pause = upstream.renew_at - loop.time()
        elif not upstream.paused:
            pause = target.idle_since + self._linger - loop.time()
        else:
            pause = 3600.0 if upstream.terminates is None else upstream.terminates - self._clock()
        # The two clocks differ slightly: the minimum keeps an early timer from spinning.
        target.timer = loop.call_later(max(pause, 0.01), self._wake, target)

    async def _attempt(self, target: Target, step: Step) -> bool:
        try:
            async with self._slots:
                await step(target)
        except (HpwsnClientError, SoapFault, JournalUnavailable) as error:
            self._note_failure(target, error)
            return False
        except Exception as error:
            log.exception("%s failed", _words(target))
            self._note_failure(target, error)
            return False
        if target.last_error is not None:
            log.info("%s: the publisher answers again", _words(target))
        target.attempt, target.last_error = 0, None
        return True

    def _note_failure(self, target: Target, error: Exception) -> None:
        # Omit the advice in the client library's errors, which is for users of a client.
        why = error.happened if isinstance(error, HpwsnClientError) else str(error)
        if isinstance(error, CertificateRefused):
            why = f"{why}; {certificate_problem(error.certificate, TRUST)[1]}"
        if target.last_error is None:
            log.warning("%s: %s; retrying", _words(target), why)
        target.last_error = why
        target.attempt += 1
        self.failures += 1

    async def _wait(self, target: Target) -> None:
        pause = self._retry.pause(target.attempt - 1, random.random())
        target.hurry.clear()
        try:
            async with asyncio.timeout(pause):
                await target.hurry.wait()
        except TimeoutError:
            pass

    # Steps

    async def _subscribe(self, target: Target) -> None:
        reference, seconds = await self._publishers.subscribe(target.registration, target.expression)
        target.upstream = Upstream(reference, None, settled=True)
        self._live_for(target.upstream, seconds)
        await self._note(target, target.upstream)

    async def _renew(self, target: Target) -> None:
        upstream = _existing(target)
        version = target.registration.version
        try:
            seconds = await self._publishers.renew(version, upstream.reference)
        except (SoapFault, BadReply) as error:
            await self._replace(target, error)
            return
        self._live_for(upstream, seconds)
        upstream.settled = True
        await self._note(target, upstream)

    async def _resume(self, target: Target) -> None:
        upstream = _existing(target)
        try:
            await self._publishers.resume(target.registration.version, upstream.reference)
        except (SoapFault, BadReply) as error:
            await self._replace(target, error)
            return
        upstream.paused, upstream.settled = False, True
        await self._note(target, upstream)

    async def _pause(self, target: Target) -> None:
        upstream = _existing(target)
        upstream.paused, upstream.settled = True, False
        await self._note(target, upstream)
        try:
            await self._publishers.pause(target.registration.version, upstream.reference)
        except (SoapFault, BadReply) as error:
            await self._replace(target, error)
            return
        upstream.settled = True

    async def _unsubscribe(self, target: Target) -> None:
        upstream = _existing(target)
        try:
            await self._publishers.unsubscribe(target.registration.version, upstream.reference)
        except (SoapFault, BadReply) as error:
            if _is_passing(error):
                raise
        await self._forget(target)

    async def _replace(self, target: Target, error: SoapFault | BadReply) -> None:
        """Remove an upstream subscription that the publisher does not know or refuses to change."""
        if _is_passing(error):
            raise error
        if is_gone(error):
            await self._forget(target)
        else:
            await self._unsubscribe(target)

    async def _forget(self, target: Target) -> None:
        target.upstream = None
        await self._journal.delete_upstream(target.registration.id, target.place)

    async def _note(self, target: Target, upstream: Upstream) -> None:
        if target.ended:
            return
        record = UpstreamRecord(
            registration=target.registration.id,
            place=target.place,
            reference=encode_epr(upstream.reference, wsnt("SubscriptionReference")),
            paused=upstream.paused,
            terminates=upstream.terminates,
        )
        await self._journal.put_upstream(record)

    def _live_for(self, upstream: Upstream, seconds: float | None) -> None:
        """Set the end, and the renewal at half of the granted or the requested lease, whichever is sooner."""
        granted = self._lifetime if seconds is None or seconds <= 0 else min(seconds, self._lifetime)
        upstream.terminates = None if seconds is None else self._clock() + granted
        half = max(granted / 2, SHORTEST_RENEWAL)
        upstream.renew_at = asyncio.get_running_loop().time() + half


def _places(registration: Registration) -> Iterator[tuple[int, TopicExpression | None]]:
    """The distinct topics with their numbers; a duplicate would be subscribed to twice."""
    if not registration.topics:
        yield 0, None
    seen = set()
    for place, topic in enumerate(registration.topics):
        meaning = topic.subtree, frozenset(topic.patterns)
        if meaning not in seen:
            seen.add(meaning)
            yield place, topic


def _existing(target: Target) -> Upstream:
    assert target.upstream is not None
    return target.upstream


def _is_passing(error: SoapFault | BadReply) -> bool:
    """Whether the error is temporary, so that the call should be retried."""
    if isinstance(error, BadReply):
        return error.status not in (404, 405, 410, 501)
    return isinstance(error, Busy)


def _state(upstream: Upstream | None) -> str:
    if upstream is None:
        return "none"
    return "paused" if upstream.paused else "subscribed"


def _words(target: Target) -> str:
    request = target.registration.request
    address = request.publisher.address if request.publisher else ""
    topic = "everything" if target.expression is None else target.expression.text
    return f"publisher {address} of registration {target.registration.id}, for {topic}"

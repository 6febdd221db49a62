"""ONVIF pull subscriptions: a subscription and its pull point, which are created and destroyed together.

This module owns both, the long poll, and its limits. The pull point has a name that no client can send.
After a crash between two steps, a pull point without its subscription is therefore recognised and removed.
A waiting poll occupies no thread and holds no message. ONVIF Core Specification, section 9.1.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.pull_points import PullPoint
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.errors import ClientDisconnected, JournalUnavailable
from hpwsn.journal.store.records import Pulled
from hpwsn.settings import OnvifSettings
from hpwsn_client.wsn.formats.onvif import CreatePullPointSubscription
from hpwsn_client.wsn.operations.messages import Subscribe
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.times import Duration

log = logging.getLogger(__name__)

_NAME_PREFIX = "\x1fonvif:"
"""The prefix of the pull points' names; XML cannot contain this control character."""

CLIENT_CHECK_INTERVAL = 1.0
"""Seconds between two checks whether a waiting client is still connected."""


class PullSubscriptions:
    """Creates, reads and removes pull subscriptions; the registry reports the end of each one."""

    def __init__(self, broker: Broker, settings: OnvifSettings, max_lifetime: float) -> None:
        self._broker = broker
        self._waiting_limit = settings.waiting_limit
        # A little less than the maximum, so that rounding cannot exceed it.
        self._lifetime = min(settings.lifetime, 0.99 * max_lifetime) if max_lifetime else settings.lifetime
        self._watches: set[asyncio.Event] = set()
        self._waiting = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, request: CreatePullPointSubscription, version: SoapVersion) -> Subscription:
        """Create a pull point and its subscription, or neither."""
        broker = self._broker
        point = await broker.pull_points.create(_NAME_PREFIX + secrets.token_hex(12))
        consumer = EndpointReference(broker.pull_point_address(point.id))
        termination = request.termination or Duration(seconds=self._lifetime)
        try:
            return await broker.subscriptions.subscribe(
                Subscribe(consumer, request.filter, termination, request.policy), version
            )
        except BaseException:
            await self._destroy(point.id)
            raise

    async def pull(
        self, id_: str, seconds: float, limit: int, client_gone: Callable[[], bool]
    ) -> tuple[Subscription, Sequence[Pulled]]:
        """Return the oldest messages; wait for them at most `seconds`. Each read extends the lifetime."""
        point, deadline = self._point(id_), asyncio.get_running_loop().time() + seconds
        expired = False
        with self._watch(point) as arrival:
            while True:
                arrival.clear()
                subscription = await self._keep_alive(id_)
                pulled = await self._broker.pull(point.id, limit, None)
                if pulled or expired or self._closed:
                    return subscription, pulled
                expired = not await self._wait_for_message(subscription, arrival, deadline, client_gone)

    async def _wait_for_message(
        self,
        subscription: Subscription,
        arrival: asyncio.Event,
        deadline: float,
        client_gone: Callable[[], bool],
    ) -> bool:
        """Return whether a message arrived before the deadline."""
        loop, lifetime = asyncio.get_running_loop(), _requested_lifetime(subscription)
        with self._waiting_slot(deadline - loop.time()):
            while not arrival.is_set():
                left = deadline - loop.time()
                if left <= 0 or self._closed:
                    return False
                if client_gone():
                    raise ClientDisconnected("the client left while it waited for messages")
                await _wait(arrival, min(left, CLIENT_CHECK_INTERVAL, lifetime / 4))
                if (subscription.terminates or 0) < self._broker.clock() + lifetime / 2:
                    await self._keep_alive(subscription.id)
        return True

    async def synchronize(self, id_: str) -> None:
        """Send the current message of each topic of the subscription again, or put it into the pull point."""
        subscription = self._broker.subscriptions.live(id_)
        if subscription.pull_point is not None:
            # A message that the client has received must leave the pull point before it can be added again.
            self._broker.pull_points.received(subscription.pull_point)
        await self._broker.delivery.settle([subscription])
        self._broker.delivery.synchronize(subscription)

    def owns(self, subscription: Subscription) -> bool:
        """Whether a subscription was created here, with its pull point."""
        id_, points = subscription.pull_point, self._broker.pull_points
        return id_ is not None and id_ in points and _is_onvif(points.get(id_))

    async def remove_orphans(self) -> None:
        """Remove pull points whose subscription a crash has removed or never created."""
        for point in self._broker.pull_points:
            if _is_onvif(point) and not self._broker.subscriptions.leading_to(point.id):
                await self._destroy(point.id)

    async def close(self) -> None:
        """End every waiting poll, and wait for running removals."""
        self._closed = True
        for watch in self._watches:
            watch.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _keep_alive(self, id_: str) -> Subscription:
        subscriptions = self._broker.subscriptions
        subscription = subscriptions.live(id_)
        try:
            await subscriptions.keep_alive(id_, self._broker.clock() + _requested_lifetime(subscription))
        except JournalUnavailable as error:
            # A client must be able to empty a pull point when the disk is full, because that frees space.
            log.warning("the lifetime of subscription %s was not extended: %s", id_, error)
        return subscription

    def _point(self, id_: str) -> PullPoint:
        subscription = self._broker.subscriptions.live(id_)
        points = self._broker.pull_points
        if subscription.pull_point is not None and _is_onvif(point := points.get(subscription.pull_point)):
            return point
        raise faults.ActionNotSupported(
            f"subscription {id_!r} has no pull point: it was created by Subscribe, and its messages go to"
            f" {subscription.request.consumer.address}; use CreatePullPointSubscription"
        )

    @contextmanager
    def _watch(self, point: PullPoint) -> Iterator[asyncio.Event]:
        arrival = asyncio.Event()
        point.watches.add(arrival)
        self._watches.add(arrival)
        try:
            yield arrival
        finally:
            point.watches.discard(arrival)
            self._watches.discard(arrival)

    @contextmanager
    def _waiting_slot(self, seconds: float) -> Iterator[None]:
        if seconds > 0 and self._waiting >= self._waiting_limit:
            raise faults.Busy(
                f"{self._waiting_limit} PullMessages are waiting already (onvif.waiting_limit); try again"
                " later, or with the Timeout PT0S"
            )
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def subscription_ended(self, subscription: Subscription) -> None:
        id_ = subscription.pull_point
        if id_ is not None and self.owns(subscription):
            task = asyncio.get_running_loop().create_task(self._destroy(id_))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _destroy(self, id_: str) -> None:
        try:
            await self._broker.pull_points.destroy(id_)
        except faults.ResourceUnknownFault:
            return
        except JournalUnavailable as error:
            log.warning(
                "pull point %s was not removed with its subscription; the next start removes it: %s",
                id_,
                error,
            )


def _is_onvif(point: PullPoint) -> bool:
    return (point.name or "").startswith(_NAME_PREFIX)


def _requested_lifetime(subscription: Subscription) -> float:
    """Return the lifetime in seconds that the client requested."""
    created, requested = datetime.fromtimestamp(subscription.created, UTC), subscription.request.termination
    assert requested is not None
    end = requested.after(created) if isinstance(requested, Duration) else requested
    return max((end - created).total_seconds(), 0.001)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return

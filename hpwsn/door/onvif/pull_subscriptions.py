"""Subscriptions whose messages are pulled, as ONVIF has them: subscription and pull point with one life.

Owns making and ending the two together, the long poll, and its bounds. The pull point is told from others by
a name that no client can give, so that after a crash between two steps the half that is left is found and
removed. A poll that waits holds no thread and no message. ONVIF Core Specification, section 9.1.
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

_OWNED = "\x1fonvif:"
"""Begins the names of such pull points; XML has no way to write it."""

BEAT = 1.0
"""Seconds between two looks whether a waiting client is still there."""


class PullSubscriptions:
    """Makes, ends and reads them; told by the registry when one has ended."""

    def __init__(self, broker: Broker, settings: OnvifSettings, max_lifetime: float) -> None:
        self._broker = broker
        self._waiting_limit = settings.waiting_limit
        # A little less than the longest, which rounding must not make it exceed.
        self._lifetime = min(settings.lifetime, 0.99 * max_lifetime) if max_lifetime else settings.lifetime
        self._watches: set[asyncio.Event] = set()
        self._waiting = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, request: CreatePullPointSubscription, version: SoapVersion) -> Subscription:
        """Make a pull point and the subscription that fills it, or neither."""
        broker = self._broker
        point = await broker.pull_points.create(_OWNED + secrets.token_hex(12))
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
        self, id_: str, seconds: float, limit: int, gone: Callable[[], bool]
    ) -> tuple[Subscription, Sequence[Pulled]]:
        """The oldest messages at once, or the first that come in time; each look prolongs the lifetime."""
        point, until = self._point(id_), asyncio.get_running_loop().time() + seconds
        over = False
        with self._watch(point) as news:
            while True:
                news.clear()
                subscription = await self._keep_alive(id_)
                pulled = await self._broker.pull(point.id, limit, None)
                if pulled or over or self._closed:
                    return subscription, pulled
                over = not await self._comes(subscription, news, until, gone)

    async def _comes(
        self, subscription: Subscription, news: asyncio.Event, until: float, gone: Callable[[], bool]
    ) -> bool:
        loop, span = asyncio.get_running_loop(), _span(subscription)
        with self._place_to_wait(until - loop.time()):
            while not news.is_set():
                left = until - loop.time()
                if left <= 0 or self._closed:
                    return False
                if gone():
                    raise ClientDisconnected("the client left while it waited for messages")
                await _wait(news, min(left, BEAT, span / 4))
                if (subscription.terminates or 0) < self._broker.clock() + span / 2:
                    await self._keep_alive(subscription.id)
        return True

    async def synchronize(self, id_: str) -> None:
        """Send, or queue, the current message of each of a subscription's topics once more."""
        subscription = self._broker.subscriptions.live(id_)
        if subscription.pull_point is not None:
            # What the client has been given must leave the queue before the same can enter it again.
            self._broker.pull_points.received(subscription.pull_point)
        await self._broker.delivery.settle([subscription])
        self._broker.delivery.synchronize(subscription)

    async def remove_orphans(self) -> None:
        """Remove the pull points that a crash has left without their subscription."""
        for point in self._broker.pull_points:
            if _is_owned(point) and not self._broker.subscriptions.leading_to(point.id):
                await self._destroy(point.id)

    async def close(self) -> None:
        """End every wait, with what there is, and the removals that are under way."""
        self._closed = True
        for watch in self._watches:
            watch.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _keep_alive(self, id_: str) -> Subscription:
        subscriptions = self._broker.subscriptions
        subscription = subscriptions.live(id_)
        try:
            await subscriptions.keep_alive(id_, self._broker.clock() + _span(subscription))
        except JournalUnavailable as error:
            # Who empties queues must be let in when the disk is full: it is what makes room.
            log.warning("subscription %s keeps its old end: %s", id_, error)
        return subscription

    def _point(self, id_: str) -> PullPoint:
        subscription = self._broker.subscriptions.live(id_)
        points = self._broker.pull_points
        if subscription.pull_point is not None and _is_owned(point := points.get(subscription.pull_point)):
            return point
        raise faults.ActionNotSupported(
            f"subscription {id_!r} has nothing to pull: it was made by Subscribe, and its messages go to"
            f" {subscription.request.consumer.address}; use CreatePullPointSubscription"
        )

    @contextmanager
    def _watch(self, point: PullPoint) -> Iterator[asyncio.Event]:
        news = asyncio.Event()
        point.watches.add(news)
        self._watches.add(news)
        try:
            yield news
        finally:
            point.watches.discard(news)
            self._watches.discard(news)

    @contextmanager
    def _place_to_wait(self, seconds: float) -> Iterator[None]:
        if seconds > 0 and self._waiting >= self._waiting_limit:
            raise faults.Busy(
                f"{self._waiting_limit} PullMessages wait already (onvif.waiting_limit); ask again later,"
                " or with the Timeout PT0S"
            )
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def subscription_ended(self, subscription: Subscription) -> None:
        id_, points = subscription.pull_point, self._broker.pull_points
        if id_ is not None and id_ in points and _is_owned(points.get(id_)):
            task = asyncio.get_running_loop().create_task(self._destroy(id_))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _destroy(self, id_: str) -> None:
        try:
            await self._broker.pull_points.destroy(id_)
        except faults.ResourceUnknownFault:
            return
        except JournalUnavailable as error:
            log.warning("pull point %s outlives its subscription until the next start: %s", id_, error)


def _is_owned(point: PullPoint) -> bool:
    return (point.name or "").startswith(_OWNED)


def _span(subscription: Subscription) -> float:
    """The seconds of life that were first asked for."""
    created, asked = datetime.fromtimestamp(subscription.created, UTC), subscription.request.termination
    assert asked is not None
    end = asked.after(created) if isinstance(asked, Duration) else asked
    return max((end - created).total_seconds(), 0.001)


async def _wait(news: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return

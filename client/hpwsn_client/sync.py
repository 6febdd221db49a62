"""The client and the receiver for code without asyncio.

Nothing is done here a second time: each method runs the asynchronous one on an event loop in a background
thread, which all sync objects of the process share and which ends with the last of them. Callbacks run in
worker threads, so they may block, and may call a SyncClient.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from hpwsn_client.arguments import Endpoint, Namespaces, Payload, TopicLike, notification_message
from hpwsn_client.client import Client, PullPoint, Registration, Subscription
from hpwsn_client.errors import Closed, TimedOut
from hpwsn_client.notification import Notification
from hpwsn_client.pipelined_publisher import Publisher
from hpwsn_client.receiver import Receiver
from hpwsn_client.wsn.operations.notifications import NotificationMessage
from hpwsn_client.wsn.soap.addressing import EndpointReference

P = ParamSpec("P")
R = TypeVar("R")
Inner = TypeVar("Inner")
Outer = TypeVar("Outer")
Method = Callable[Concatenate[Inner, P], Coroutine[Any, Any, R]]


class _Background:
    """An event loop in a daemon thread, there while somebody uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def acquire(self) -> None:
        with self._lock:
            self._users += 1
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="hpwsn-client", daemon=True
                )
                self._thread.start()

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users or self._loop is None or self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop = self._thread = None

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """The result of the coroutine; an interrupt in this thread cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "a sync client cannot be used inside its own event loop; use the asynchronous one"
            )
        if self._loop is None:
            work.close()
            raise Closed("this sync object was closed; make a new one", "")
        future: Future[R] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise Closed("this sync object was closed by another thread", "") from None
        except BaseException:
            future.cancel()
            raise

    def later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start the work after a while, without waiting for it; once nobody uses the loop, not at all."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(loop.call_later, seconds, self._start, work)

    def _start(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        task = asyncio.ensure_future(work())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()


_background = _Background()


class _Face(Generic[Inner]):
    """A sync object in front of an asynchronous one."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"Sync{self._inner!r}"


def _inner(value: Any) -> Any:
    return value._inner if isinstance(value, _Face) else value


def _blocking(method: Method[Inner, P, R]) -> Callable[Concatenate[_Face[Inner], P], R]:
    """The same method, which returns when its work is done."""

    @wraps(method)
    def call(self: _Face[Inner], /, *args: P.args, **kwargs: P.kwargs) -> R:
        plain = [_inner(a) for a in args]
        named = {name: _inner(value) for name, value in kwargs.items()}
        return _background.run(method(self._inner, *plain, **named))

    return call


def _blocking_as(
    outer: Callable[[R], Outer], method: Method[Inner, P, R]
) -> Callable[Concatenate[_Face[Inner], P], Outer]:
    """The same method, whose result gets its own sync face."""
    blocking = _blocking(method)

    @wraps(method)
    def call(self: _Face[Inner], /, *args: P.args, **kwargs: P.kwargs) -> Outer:
        return outer(blocking(self, *args, **kwargs))

    return call


class _Owner(_Face[Inner]):
    """A sync object that keeps the background loop alive until it is closed."""

    def __init__(self, inner: Inner) -> None:
        super().__init__(inner)
        self._closed = False
        _background.acquire()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close as the asynchronous object does; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._close()
        finally:
            _background.release()

    def _close(self) -> None:
        raise NotImplementedError


class SyncSubscription(_Face[Subscription]):
    """A handle on a subscription at the broker."""

    renew = _blocking(Subscription.renew)
    set_termination_time = _blocking(Subscription.set_termination_time)
    get_property = _blocking(Subscription.get_property)
    pause = _blocking(Subscription.pause)
    resume = _blocking(Subscription.resume)
    unsubscribe = _blocking(Subscription.unsubscribe)

    @property
    def epr(self) -> EndpointReference:
        """The subscription's own endpoint."""
        return self._inner.epr

    @property
    def terminates(self) -> datetime | None:
        """Its end as last heard, None for ever."""
        return self._inner.terminates


class SyncPullPoint(_Face[PullPoint]):
    """A handle on a pull point at the broker."""

    get_messages = _blocking(PullPoint.get_messages)
    destroy = _blocking(PullPoint.destroy)

    @property
    def epr(self) -> EndpointReference:
        """The pull point as a consumer reference."""
        return self._inner.epr


class SyncRegistration(_Face[Registration]):
    """A handle on a publisher's registration."""

    notify = _blocking(Registration.notify)
    destroy = _blocking(Registration.destroy)

    @property
    def epr(self) -> EndpointReference:
        """The registration's own endpoint."""
        return self._inner.epr

    @property
    def consumer(self) -> EndpointReference:
        """Where the broker wants the publisher's notifications."""
        return self._inner.consumer


class SyncClient(_Owner[Client]):
    """Client for code without asyncio; the options are Client's."""

    def __init__(self, url: str | None = None, **options: Any) -> None:
        super().__init__(Client(url, **options))

    notify = _blocking(Client.notify)
    notify_many = _blocking(Client.notify_many)
    subscribe = _blocking_as(SyncSubscription, Client.subscribe)
    renew = _blocking(Client.renew)
    unsubscribe = _blocking(Client.unsubscribe)
    pause = _blocking(Client.pause)
    resume = _blocking(Client.resume)
    create_pull_point = _blocking_as(SyncPullPoint, Client.create_pull_point)
    get_messages = _blocking(Client.get_messages)
    destroy_pull_point = _blocking(Client.destroy_pull_point)
    get_current_message = _blocking(Client.get_current_message)
    get_resource_property = _blocking(Client.get_resource_property)
    get_resource_properties = _blocking(Client.get_resource_properties)
    query_resource_properties = _blocking(Client.query_resource_properties)
    get_topics = _blocking(Client.get_topics)
    set_termination_time = _blocking(Client.set_termination_time)
    destroy = _blocking(Client.destroy)
    register_publisher = _blocking_as(SyncRegistration, Client.register_publisher)
    destroy_registration = _blocking(Client.destroy_registration)
    _close = _blocking(Client.close)

    def publisher(self, **options: Any) -> SyncPublisher:
        """A publisher for a stream of notifications; the options are those of Client.publisher."""
        return SyncPublisher(self._inner.publisher(**options))

    @property
    def url(self) -> str:
        """The broker's URL."""
        return self._inner.url


class SyncPublisher(_Owner[Publisher]):
    """Publisher for code without asyncio; made by `SyncClient.publisher`.

    `put` may be called from any thread. It hands a whole batch to the event loop at a time, since one at a
    time costs more than the rest of the way.
    """

    def __init__(self, inner: Publisher) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._gathered: list[NotificationMessage] = []
        self._in_turn = asyncio.Lock()

    def put(
        self,
        topic: TopicLike | None,
        payload: Payload,
        *,
        producer: Endpoint | None = None,
        namespaces: Namespaces | None = None,
    ) -> None:
        """Publish one notification soon; waits only while too many wait. See Publisher.put."""
        if self._closed:
            raise Closed("this publisher was closed; make a new one", self._inner.url)
        message = notification_message(topic, payload, producer=producer, namespaces=namespaces)
        with self._lock:
            self._gathered.append(message)
            count = len(self._gathered)
        if count >= self._inner.batch:
            _background.run(self._hand_over_and_check())
        elif count == 1:
            _background.later(self._inner.linger, self._hand_over)

    def flush(self) -> None:
        """Return when all is accepted; PublishFailed tells of what was not."""
        _background.run(self._flush())

    def _close(self) -> None:
        _background.run(self._flush_and_close())

    async def _flush(self) -> None:
        await self._hand_over()
        await self._inner.flush()

    async def _flush_and_close(self) -> None:
        try:
            await self._hand_over()
        finally:
            await self._inner.close()

    async def _hand_over_and_check(self) -> None:
        await self._hand_over()
        self._inner.check()

    async def _hand_over(self) -> None:
        # One at a time, so that what was gathered first is put first.
        async with self._in_turn:
            with self._lock:
                gathered, self._gathered = self._gathered, []
            await self._inner.enqueue(gathered)


class SyncReceiver(_Owner[Receiver]):
    """Receiver for code without asyncio, open as soon as it is made; the options are Receiver's."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        callback: Callable[[Notification], object] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(Receiver(host, port, callback=callback and _in_thread(callback), **options))
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    get = _blocking(Receiver.get)
    _open = _blocking(Receiver.open)
    _close = _blocking(Receiver.close)

    @property
    def url(self) -> str:
        """Where the broker delivers to."""
        return self._inner.url

    @property
    def epr(self) -> EndpointReference:
        """The receiver as a consumer reference."""
        return self._inner.epr

    def __iter__(self) -> Iterator[Notification]:
        return self.notifications()

    def notifications(self, timeout: float | None = None) -> Iterator[Notification]:
        """Notifications as they come, until the receiver is closed, or none came for `timeout` seconds."""
        try:
            while True:
                yield self.get(timeout)
        except (Closed, TimedOut):
            return


def _in_thread(
    callback: Callable[[Notification], object],
) -> Callable[[Notification], Coroutine[Any, Any, object]]:
    async def call(notification: Notification) -> object:
        return await asyncio.to_thread(callback, notification)

    return call

"""The client, the publisher and the receiver for code without asyncio.

Each method runs the asynchronous method on an event loop in a background thread. All sync objects of the
process share this loop; it stops when the last of them is closed. Callbacks run in worker threads, so they
may block and may call a SyncClient.
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

from hpwsn_client.arguments import (
    Endpoint,
    Namespaces,
    Payload,
    TopicLike,
    notification_message,
    trace_of_caller,
)
from hpwsn_client.client import Client, PullPoint, Registration, Subscription
from hpwsn_client.errors import Closed, TimedOut
from hpwsn_client.figures import Figures
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


class _BackgroundLoop:
    """An event loop in a daemon thread, which runs while it has users."""

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
        """Run the coroutine on the loop and return its result; an interrupt in this thread cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "a sync object was called inside its own event loop; use the asynchronous client there"
            )
        if self._loop is None:
            work.close()
            raise Closed("this object is closed; create a new one", "")
        future: Future[R] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise Closed("this object was closed by another thread during the call", "") from None
        except BaseException:
            future.cancel()
            raise

    def run_later(self, seconds: float, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start the work after a delay without waiting for it; do nothing if the loop has stopped."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(loop.call_later, seconds, self._start, work)

    def _start(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        task = asyncio.ensure_future(work())
        self._tasks.add(task)
        task.add_done_callback(self._discard)

    def _discard(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()


_background = _BackgroundLoop()


class _SyncWrapper(Generic[Inner]):
    """A sync object that wraps an asynchronous one."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"Sync{self._inner!r}"


def _unwrap(value: Any) -> Any:
    return value._inner if isinstance(value, _SyncWrapper) else value


def _blocking(method: Method[Inner, P, R]) -> Callable[Concatenate[_SyncWrapper[Inner], P], R]:
    """A blocking version of an asynchronous method."""

    @wraps(method)
    def call(self: _SyncWrapper[Inner], /, *args: P.args, **kwargs: P.kwargs) -> R:
        plain = [_unwrap(a) for a in args]
        named = {name: _unwrap(value) for name, value in kwargs.items()}
        return _background.run(method(self._inner, *plain, **named))

    return call


def _blocking_wrapped(
    outer: Callable[[R], Outer], method: Method[Inner, P, R]
) -> Callable[Concatenate[_SyncWrapper[Inner], P], Outer]:
    """A blocking version of an asynchronous method, with its result wrapped as a sync object."""
    blocking = _blocking(method)

    @wraps(method)
    def call(self: _SyncWrapper[Inner], /, *args: P.args, **kwargs: P.kwargs) -> Outer:
        return outer(blocking(self, *args, **kwargs))

    return call


class _ClosableWrapper(_SyncWrapper[Inner]):
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
        """Close the asynchronous object; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._close()
        finally:
            _background.release()

    def _close(self) -> None:
        raise NotImplementedError


class SyncSubscription(_SyncWrapper[Subscription]):
    """A subscription at the broker; see Subscription."""

    renew = _blocking(Subscription.renew)
    set_termination_time = _blocking(Subscription.set_termination_time)
    get_property = _blocking(Subscription.get_property)
    pause = _blocking(Subscription.pause)
    resume = _blocking(Subscription.resume)
    unsubscribe = _blocking(Subscription.unsubscribe)

    @property
    def epr(self) -> EndpointReference:
        """The subscription's endpoint reference."""
        return self._inner.epr

    @property
    def terminates(self) -> datetime | None:
        """The last known termination time; None means no expiry."""
        return self._inner.terminates


class SyncPullPoint(_SyncWrapper[PullPoint]):
    """A pull point at the broker; see PullPoint."""

    get_messages = _blocking(PullPoint.get_messages)
    destroy = _blocking(PullPoint.destroy)

    @property
    def epr(self) -> EndpointReference:
        """The pull point's endpoint reference, usable as a consumer."""
        return self._inner.epr


class SyncRegistration(_SyncWrapper[Registration]):
    """A publisher's registration; see Registration."""

    notify = _blocking(Registration.notify)
    destroy = _blocking(Registration.destroy)

    @property
    def epr(self) -> EndpointReference:
        """The registration's endpoint reference."""
        return self._inner.epr

    @property
    def consumer(self) -> EndpointReference:
        """The endpoint to which the publisher publishes."""
        return self._inner.consumer


class SyncClient(_ClosableWrapper[Client]):
    """Client for code without asyncio; see Client for the options."""

    def __init__(self, url: str | None = None, **options: Any) -> None:
        super().__init__(Client(url, **options))

    notify = _blocking(Client.notify)
    notify_many = _blocking(Client.notify_many)
    subscribe = _blocking_wrapped(SyncSubscription, Client.subscribe)
    renew = _blocking(Client.renew)
    unsubscribe = _blocking(Client.unsubscribe)
    announce = _blocking(Client.announce)
    pause = _blocking(Client.pause)
    resume = _blocking(Client.resume)
    create_pull_point = _blocking_wrapped(SyncPullPoint, Client.create_pull_point)
    get_messages = _blocking(Client.get_messages)
    destroy_pull_point = _blocking(Client.destroy_pull_point)
    get_current_message = _blocking(Client.get_current_message)
    get_resource_property = _blocking(Client.get_resource_property)
    get_resource_properties = _blocking(Client.get_resource_properties)
    query_resource_properties = _blocking(Client.query_resource_properties)
    get_topics = _blocking(Client.get_topics)
    set_termination_time = _blocking(Client.set_termination_time)
    destroy = _blocking(Client.destroy)
    register_publisher = _blocking_wrapped(SyncRegistration, Client.register_publisher)
    destroy_registration = _blocking(Client.destroy_registration)
    _close = _blocking(Client.close)

    def publisher(self, **options: Any) -> SyncPublisher:
        """Create a publisher for a stream of notifications; see Client.publisher for the options."""
        return SyncPublisher(self._inner.publisher(**options))

    def figures(self) -> Figures:
        """The counts of the asynchronous object."""
        return self._inner.figures()

    @property
    def url(self) -> str:
        """The broker's URL."""
        return self._inner.url


class SyncPublisher(_ClosableWrapper[Publisher]):
    """Publisher for code without asyncio; create one with `SyncClient.publisher`.

    `put` may be called from any thread. It passes notifications to the event loop in batches, because one
    call across threads costs more than sending a notification.
    """

    def __init__(self, inner: Publisher) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._buffer: list[tuple[NotificationMessage, str | None]] = []
        self._enqueue_lock = asyncio.Lock()

    def put(
        self,
        topic: TopicLike | None,
        payload: Payload,
        *,
        producer: Endpoint | None = None,
        namespaces: Namespaces | None = None,
    ) -> None:
        """Queue one notification; blocks while the queue is full. See Publisher.put."""
        if self._closed:
            raise Closed("this publisher is closed; create a new one", self._inner.url)
        message = notification_message(
            topic, payload, producer=producer, namespaces=namespaces, limits=self._inner.limits
        )
        trace = trace_of_caller()
        with self._lock:
            self._buffer.append((message, trace))
            count = len(self._buffer)
        if count >= self._inner.batch:
            _background.run(self._enqueue_and_check())
        elif count == 1:
            _background.run_later(self._inner.linger, self._enqueue_buffer)

    def figures(self) -> Figures:
        """The counts of the asynchronous object."""
        return self._inner.figures()

    def flush(self) -> None:
        """Wait until all notifications are accepted; PublishFailed if some were not."""
        _background.run(self._flush())

    def _close(self) -> None:
        _background.run(self._flush_and_close())

    async def _flush(self) -> None:
        await self._enqueue_buffer()
        await self._inner.flush()

    async def _flush_and_close(self) -> None:
        try:
            await self._enqueue_buffer()
        finally:
            await self._inner.close()

    async def _enqueue_and_check(self) -> None:
        await self._enqueue_buffer()
        self._inner.check()

    async def _enqueue_buffer(self) -> None:
        # The lock keeps the order of the notifications.
        async with self._enqueue_lock:
            with self._lock:
                messages, self._buffer = self._buffer, []
            await self._inner.enqueue(messages)


class SyncReceiver(_ClosableWrapper[Receiver]):
    """Receiver for code without asyncio; the constructor starts it. See Receiver for the options."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        callback: Callable[[Notification], object] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(Receiver(host, port, callback=callback and _run_in_thread(callback), **options))
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    get = _blocking(Receiver.get)
    get_receipt = _blocking(Receiver.get_receipt)
    _open = _blocking(Receiver.open)
    _close = _blocking(Receiver.close)

    def figures(self) -> Figures:
        """The counts of the asynchronous object."""
        return self._inner.figures()

    @property
    def url(self) -> str:
        """The URL to which the broker delivers."""
        return self._inner.url

    @property
    def epr(self) -> EndpointReference:
        """The receiver's endpoint reference, usable as a consumer."""
        return self._inner.epr

    def __iter__(self) -> Iterator[Notification]:
        return self.notifications()

    def notifications(self, timeout: float | None = None) -> Iterator[Notification]:
        """Iterate over notifications until the receiver is closed, or none arrives for `timeout` seconds."""
        try:
            while True:
                yield self.get(timeout)
        except (Closed, TimedOut):
            return


def _run_in_thread(
    callback: Callable[[Notification], object],
) -> Callable[[Notification], Coroutine[Any, Any, object]]:
    async def call(notification: Notification) -> object:
        return await asyncio.to_thread(callback, notification)

    return call

"""The sender of webhooks: posts notifications to the consumer as a JSON array of events.

The events are those of the JSON door, which also encodes them: `encode` is its function. Webhooks that get
the same notifications one after another share one body. A large body is encoded and signed in a thread, so
that the event loop goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from hpwsn.background import in_thread
from hpwsn.broker.delivery.sending import Done, batch_of
from hpwsn.broker.delivery.traced_pushes import NO_SPANS, DeliveryTracing
from hpwsn.broker.push.pool import Pusher
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.readers.log_pages import LOOP_BYTES, Encode, Stretch
from hpwsn.broker.subscriptions.subscription import Subscription
from hpwsn.broker.subscriptions.webhook import Webhook
from hpwsn.notification import END, Notification, Run

log = logging.getLogger(__name__)

_shared = attrgetter("topic", "time", "message_id", "trace")
"""What the events of a stretch have in common."""
_trace = attrgetter("trace")


class WebhookSender:
    """Posts JSON arrays; the consumer's 2xx is the acknowledgement."""

    def __init__(
        self,
        pusher: Pusher,
        batch: int,
        encode: Encode,
        tracing: DeliveryTracing = NO_SPANS,
        mark: Callable[[], bytes] = bytes,
    ) -> None:
        """`mark` is the header line with the mark of this node."""
        self._mark = mark
        self._pusher = pusher
        self._batch = batch
        self._encode = encode
        self._tracing = tracing
        self._sent: Sequence[Notification] = ()
        self._body = b"[]"
        self._encoding: dict[asyncio.Task[None], Done] = {}
        """Large bodies that are encoded now, and who waits for the outcome."""

    def batch(self, subscription: Subscription) -> int:
        """The policy's batch or the node's."""
        return batch_of(subscription, self._batch)

    def send(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        done: Done,
    ) -> None:
        """Post one array with all of the notifications."""
        if notifications is self._sent:
            self._post(subscription, notifications, self._body, done)
        elif sum([len(each.content) for each in notifications]) > LOOP_BYTES:
            encoding = self._post_large(subscription, offsets, notifications, done)
            task = asyncio.get_running_loop().create_task(encoding)
            self._encoding[task] = done
            task.add_done_callback(self._encoding.pop)
        else:
            try:
                body = self._array(offsets, notifications)
            except Exception as error:
                # As for a post, the outcome comes after this call has returned.
                asyncio.get_running_loop().call_soon(done, _not_encoded(subscription, error))
                return
            self._sent, self._body = notifications, body
            self._post(subscription, notifications, body, done)

    async def close(self) -> None:
        """Encode nothing more; what was to be posted stays in the log."""
        encoding = dict(self._encoding)
        for task in encoding:
            task.cancel()
        if encoding:
            await asyncio.wait(encoding)
        for task, done in encoding.items():
            if task.cancelled():
                done(Outcome(OutcomeKind.CANCELLED, reason="the broker is stopping"))

    def _post(
        self,
        subscription: Subscription,
        notifications: Sequence[Notification],
        body: bytes,
        done: Done,
        headers: bytes | None = None,
    ) -> None:
        """Post a body; without `headers`, sign it first."""
        url = subscription.request.consumer.address
        headers = _webhook(subscription).headers(body) if headers is None else headers
        headers += self._mark()
        if any(map(_trace, notifications)):
            lines, done = self._tracing.begin(subscription.id, url, notifications, done)
            headers += lines
        self._pusher.post(url, headers, body, done)

    async def _post_large(
        self,
        subscription: Subscription,
        offsets: Sequence[int],
        notifications: Sequence[Notification],
        done: Done,
    ) -> None:
        """Encode and sign in a thread; a failure is an outcome, so that the subscription goes on."""

        def encode() -> tuple[bytes, bytes]:
            body = self._array(offsets, notifications)
            return _webhook(subscription).headers(body), body

        try:
            headers, body = await in_thread(encode)
        except Exception as error:
            done(_not_encoded(subscription, error))
            return
        self._post(subscription, notifications, body, done, headers)

    def _array(self, offsets: Sequence[int], notifications: Sequence[Notification]) -> bytes:
        return b"[" + b",\n".join(self._encode(list(_stretches(offsets, notifications)))) + b"]\n"


def _webhook(subscription: Subscription) -> Webhook:
    assert subscription.webhook is not None
    return subscription.webhook


def _not_encoded(subscription: Subscription, error: Exception) -> Outcome:
    log.error("subscription %s: events could not be encoded", subscription.id, exc_info=error)
    return Outcome(OutcomeKind.UNAVAILABLE, reason=f"the events could not be encoded: {error}")


def _stretches(offsets: Sequence[int], notifications: Sequence[Notification]) -> Iterator[Stretch]:
    """The notifications as the encoder takes them: together where only their payloads differ."""
    start = 0
    for (topic, time, message_id, trace), group in groupby(notifications, _shared):
        payloads = [each.payload for each in group]
        end = start + len(payloads)
        run = Run(topic, b"", END.join((*payloads, b"")), len(payloads), time, message_id, trace=trace)
        yield Stretch(offsets[start:end], run)
        start = end

"""Receipts: a POST to the publisher for each final outcome of its notifications, where it asked for one.

The request for receipts is in the ProducerReference of a notification. Until a notification with such a
request is committed, or a restart leaves a backlog that may hold some, receipts do not look at outcomes. A
receipt is retried for a while; receipts that are in flight when the node stops, or beyond the limit, are
lost. Notifications of one request and one send share a receipt.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from typing import Protocol

from hpwsn.broker.lifetimes.retry import RetryPolicy
from hpwsn.broker.outcomes.outcome import DeliveryOutcome
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.journal.store.records import Stored
from hpwsn.listeners import Listeners
from hpwsn.notification import Notification, Run
from hpwsn_client.wsn.operations.receipts import (
    ACTION_RECEIPT,
    JSON_FORM,
    RECEIPT_TO,
    Receipt,
    ReceiptTo,
    encode_receipt,
    parse_receipt_to,
    receipt_object,
)
from hpwsn_client.wsn.soap.addressing import Addressing, encode_addressing, reference_parameter_headers
from hpwsn_client.wsn.soap.envelope import SoapVersion, encode_envelope
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.version import request_headers
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml

log = logging.getLogger(__name__)

MARK = b"ReceiptTo"
"""Occurs before the payload of every notification whose publisher asked for receipts."""

Post = Callable[[str, bytes, bytes, Callable[[Outcome], None]], object]


class Log(Protocol):
    """The part of the journal that receipts read."""

    async def read(self, offsets: Sequence[int]) -> Sequence[Stored]:
        """The notifications at these offsets that are still kept."""


@dataclass(slots=True)
class _Sending:
    """A receipt on its way."""

    url: str
    headers: bytes
    body: bytes
    since: float
    attempt: int = 0


class Receipts:
    """Turns outcomes into receipts, and posts them."""

    def __init__(
        self,
        outcomes: Listeners[DeliveryOutcome],
        journal: Log,
        post: Post,
        retry: RetryPolicy,
        limit: int,
    ) -> None:
        self._outcomes = outcomes
        self._journal = journal
        self._post = post
        self._retry = retry
        self._limit = limit
        self._listening = False
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._reads: set[asyncio.Task[None]] = set()
        self._in_flight = 0
        self._closing = False
        self.sent = 0
        self.failed = 0
        """Receipts that the publisher did not take within the retry time."""
        self.skipped = 0
        """Receipts beyond the limit, or of notifications that retention has removed."""

    def committed(self, first: int, runs: Sequence[Run]) -> None:
        """Listen to outcomes from the first commit on that has a request for receipts."""
        if not self._listening and any(MARK in run.before for run in runs):
            self.listen()

    def listen(self) -> None:
        """Look at all outcomes from now on; called at a start with a backlog."""
        if not self._listening:
            self._listening = True
            self._outcomes.add(self.note)

    def note(self, outcome: DeliveryOutcome) -> None:
        """Send the receipts for an outcome that is final."""
        if not outcome.result.is_final or self._closing:
            return
        if outcome.notifications:
            self._report(outcome, outcome.notifications)
        elif len(self._reads) < self._limit:
            task = asyncio.get_running_loop().create_task(self._read(outcome))
            self._reads.add(task)
            task.add_done_callback(self._reads.discard)
        else:
            self.skipped += len(outcome.offsets)

    async def _read(self, outcome: DeliveryOutcome) -> None:
        try:
            found = await self._journal.read(outcome.offsets)
        except Exception as error:
            log.warning("receipts of %d notifications are lost: %s", len(outcome.offsets), error)
            return
        self._report(outcome, [stored.notification for stored in found])

    def _report(self, outcome: DeliveryOutcome, notifications: Sequence[Notification]) -> None:
        for (asked, _), group in groupby(notifications, lambda each: (_request_in(each), each.topic)):
            if asked is not None:
                same = list(group)
                self._send(asked, _receipt(asked, outcome, same[0], len(same)))

    def _send(self, asked: ReceiptTo, receipt: Receipt) -> None:
        if self._in_flight >= self._limit:
            if not self.skipped:
                log.warning("%d receipts are in flight; further ones are skipped", self._in_flight)
            self.skipped += 1
            return
        self._in_flight += 1
        headers, body = _request(asked, receipt)
        loop = asyncio.get_running_loop()
        self._try(_Sending(asked.address.address, headers, body, loop.time()))

    def _try(self, sending: _Sending) -> None:
        self._timers.pop(id(sending), None)
        self._post(sending.url, sending.headers, sending.body, lambda outcome: self._done(sending, outcome))

    def _done(self, sending: _Sending, outcome: Outcome) -> None:
        loop = asyncio.get_running_loop()
        if outcome.kind is OutcomeKind.DELIVERED:
            self._in_flight -= 1
            self.sent += 1
        elif self._closing or outcome.kind is OutcomeKind.CANCELLED:
            self._in_flight -= 1
        elif self._retry.exhausted(sending.since, loop.time(), sending.attempt):
            self._in_flight -= 1
            self.failed += 1
            log.warning("a receipt was not delivered: %s", outcome.reason)
        else:
            pause = self._retry.pause(sending.attempt, random.random(), outcome.retry_after)
            sending.attempt += 1
            self._timers[id(sending)] = loop.call_later(pause, self._try, sending)

    async def close(self) -> None:
        """Send no more receipts."""
        self._closing = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in self._reads:
            task.cancel()
        if self._reads:
            await asyncio.wait(self._reads)

    def figures(self) -> dict[str, int]:
        """The counters in /status."""
        return {
            "sent": self.sent,
            "failed": self.failed,
            "skipped": self.skipped,
            "in_flight": self._in_flight,
        }


def _request_in(notification: Notification) -> ReceiptTo | None:
    """The request for receipts of a notification, if it has one."""
    if notification.content.find(MARK, 0, notification.start) < 0:
        return None
    return _parse_request(notification.content[: notification.start])


@lru_cache(maxsize=256)
def _parse_request(before: bytes) -> ReceiptTo | None:
    """Parse the request from the bytes before a payload, which end with the start tag of its Message."""
    try:
        parts = parse_xml(b"<r>" + before + b"</wsnt:Message></r>", STORED_LIMITS)
        found = next(parts.iter(RECEIPT_TO), None)
        return None if found is None else parse_receipt_to(found)
    except SoapFault:
        return None


def _receipt(asked: ReceiptTo, outcome: DeliveryOutcome, first: Notification, count: int) -> Receipt:
    return Receipt(
        outcome=outcome.result.value,
        consumer=hashlib.sha256(outcome.subscription.encode()).hexdigest()[:16],
        time=datetime.fromtimestamp(outcome.time, UTC),
        count=count,
        message_id=asked.message_id,
        topic=None if first.topic is None else str(first.topic),
        status=outcome.status,
        reason=outcome.kind,
    )


def _request(asked: ReceiptTo, receipt: Receipt) -> tuple[bytes, bytes]:
    """The header lines and the body of the POST."""
    if asked.form == JSON_FORM:
        return b"Content-Type: application/json\r\n", json.dumps(receipt_object(receipt)).encode()
    version = SoapVersion.SOAP11
    addressing = Addressing(
        action=ACTION_RECEIPT, to=asked.address.address, message_id=f"urn:uuid:{uuid.uuid4()}"
    )
    headers = encode_addressing(addressing) + reference_parameter_headers(asked.address)
    http = request_headers(version, ACTION_RECEIPT)
    lines = "".join(f"{name}: {value}\r\n" for name, value in http.items())
    return lines.encode(), encode_envelope(version, encode_receipt(receipt), headers)

"""Notifications that come to the node by its backbone, from another process or from an earlier life of its
own.

They are held to what a door would have held them to: one topic, known where the tree is fixed, well-formed,
within the limits, and an id that is new. Nobody waits for an answer, so what is refused goes back with its
reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from hpwsn.backbone.interface import Screened
from hpwsn.broker.admission.admission import Publisher
from hpwsn.broker.admission.message_ids import Span
from hpwsn.notification import Notification
from hpwsn_client.wsn.operations.notifications import join_notification, parse_notification_message
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.xml import Limits


class Arrivals:
    """Screens what the backbone brings."""

    def __init__(self, publisher: Publisher, limits: Limits, clock: Callable[[], float]) -> None:
        self._publisher = publisher
        self._clock = clock
        self._limits = limits

    def screen(self, notifications: Sequence[Notification], *, checked: bool) -> Screened:
        """What of these can be stored; checked ones that have one id in common are one publication."""
        kept: list[Notification] = []
        refused: list[tuple[Notification, str]] = []
        claims: dict[str, asyncio.Future[Span]] = {}
        for notification in notifications:
            try:
                candidate = notification if checked else self._rebuild(notification)
            except (SoapFault, ValueError) as error:
                refused.append((notification, str(error)))
                continue
            if self._is_new(candidate, claims, checked):
                kept.append(candidate)
        repeated = len(notifications) - len(kept) - len(refused)
        self._publisher.repeated += repeated
        self._publisher.refused += len(refused)
        return Screened(kept, refused, repeated, lambda first: self._stored(first, kept, claims))

    def _rebuild(self, notification: Notification) -> Notification:
        """Read it as a door would; its own word for topic and payload counts for nothing."""
        element = parse_message_xml(join_notification(notification.content), self._limits)
        message = parse_notification_message(element)
        return self._publisher.notification(
            message, min(notification.time, self._clock()), notification.message_id, notification.target
        )

    def _is_new(
        self, notification: Notification, claims: dict[str, asyncio.Future[Span]], together: bool
    ) -> bool:
        id_ = notification.message_id
        if id_ is None or (together and id_ in claims):
            return True
        claim = self._publisher.claim(id_)
        if claim is None:
            return False
        claims[id_] = claim
        return True

    def _stored(
        self, first: int, kept: Sequence[Notification], claims: dict[str, asyncio.Future[Span]]
    ) -> None:
        self._publisher.accepted += len(kept)
        spans: dict[str, Span] = {}
        for offset, notification in enumerate(kept, first):
            if notification.message_id is not None:
                begin = spans.get(notification.message_id, Span(offset, offset)).first
                spans[notification.message_id] = Span(begin, offset)
        for id_, claim in claims.items():
            if not claim.done():
                claim.set_result(spans[id_])

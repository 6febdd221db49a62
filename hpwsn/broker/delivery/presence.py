"""Presence: a consumer that was away says that it is reachable, and gets at once what waits for it.

All subscriptions with this consumer are meant, webhooks too. Those that are paused or expired get nothing. A
send that was begun before the announcement and fails is repeated once without a pause. Addresses are compared
as the requests that they stand for, so the case of the host and a default port make no difference.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hpwsn.broker.delivery.delivery import Delivery
from hpwsn.broker.push.request import Target, parse_target
from hpwsn.broker.subscriptions.subscriptions import Subscriptions

LOOKED_AT_ONCE = 1000
"""Subscriptions that are compared before the event loop goes on."""


@dataclass(frozen=True, slots=True)
class Woken:
    """How many subscriptions were woken, and how many notifications wait for them."""

    subscriptions: int
    waiting: int


class Presence:
    """Finds the subscriptions of a consumer and wakes them."""

    def __init__(self, subscriptions: Subscriptions, delivery: Delivery) -> None:
        self._subscriptions = subscriptions
        self._delivery = delivery

    async def announce(self, consumer: str) -> Woken:
        """Deliver now what waits for a consumer; ValueError if the address cannot be one."""
        wanted = parse_target(consumer)
        woken = waiting = 0
        for number, subscription in enumerate(self._subscriptions, 1):
            if not number % LOOKED_AT_ONCE:
                await asyncio.sleep(0)
            if not _is_same(subscription.request.consumer.address, consumer, wanted):
                continue
            backlog = subscription.cursor.backlog
            if self._delivery.announced(subscription):
                woken += 1
                waiting += backlog
        return Woken(woken, waiting)


def _is_same(address: str, consumer: str, wanted: Target) -> bool:
    if address == consumer:
        return True
    if _path(address) != _path(consumer):
        return False  # most differ here, so most need not be parsed
    try:
        return parse_target(address) == wanted
    except ValueError:
        return False


def _path(address: str) -> str:
    return "/".join(address.split("/", 3)[3:])

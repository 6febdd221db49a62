"""Subscriptions as operators see them: their fields, which of them a list has, and in what order.

A subscription is behind if notifications wait for it; `reason` then says why, and `oldest` since when. What
only the journal knows is read for one page at once, not for each subscription.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from aiohttp import web

from hpwsn.broker.broker import Broker
from hpwsn.broker.subscriptions.subscription import State, Subscription, subscriptions_of
from hpwsn.door.rest.json_answers import bad, moment
from hpwsn.http_json.list_pages import Sortable
from hpwsn_client.wsn.formats.original import is_original
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

LIVE, PAUSED, RETRYING, EXPIRED = "live", "paused", "retrying", "expired"
STATES = (LIVE, PAUSED, RETRYING, EXPIRED)
KINDS = ("soap", "raw", "original", "onvif", "pull", "webhook")
DEFAULT_SORT = "-waiting"


class SubscriptionItems:
    """Describes, finds and orders the subscriptions of a node; `is_onvif` knows ONVIF's pull ones."""

    def __init__(self, broker: Broker, node: str, is_onvif: Callable[[Subscription], bool]) -> None:
        self._broker = broker
        self._node = node
        self._is_onvif = is_onvif

    async def describe(self, page: Collection[Subscription]) -> list[dict[str, Any]]:
        """The fields of some subscriptions."""
        journal = self._broker.journal
        oldest = {offset for each in page if (offset := _oldest_offset(each)) is not None}
        times = await journal.times(oldest) if oldest else {}
        letters = await journal.dead_letters_by_subscription([each.id for each in page])
        return [self._describe(each, times, letters) for each in page]

    def _describe(
        self, subscription: Subscription, times: Mapping[int, float], letters: Mapping[str, int]
    ) -> dict[str, Any]:
        progress, delivery, state = subscription.progress, self._broker.delivery, state_of(subscription)
        return {
            "id": subscription.id,
            "kind": self.kind_of(subscription),
            "node": self._node,
            "reference": subscription.address,
            "consumer": subscription.request.consumer.address,
            "topics": [expression.text for expression in subscription.topics],
            "content": [content.expression for content in subscription.content],
            "conditions": [condition.expression for condition in subscription.producer_properties],
            "holding": subscription.producer_holds,
            "created": moment(subscription.created),
            "terminates": moment(subscription.terminates),
            "paused": subscription.paused,
            "state": state,
            "reason": _reason(subscription, state),
            "waiting": subscription.cursor.backlog,
            "oldest": moment(times.get(_oldest_offset(subscription) or 0)),
            "rate": round(delivery.rates.rate(subscription), 3),
            "next_attempt": moment(delivery.next_attempt(subscription)),
            "delivered": progress.delivered,
            "dropped": progress.dropped,
            "expired_unsent": progress.expired,
            "failures": progress.failures,
            "dead_letters": letters.get(subscription.id, 0),
            "last_error": progress.last_error,
        }

    def kind_of(self, subscription: Subscription) -> str:
        """How its consumer gets notifications: one of KINDS."""
        if subscription.webhook is not None:
            return "webhook"
        if subscription.pull_point is not None:
            return "onvif" if self._is_onvif(subscription) else "pull"
        if is_original(subscription.request):
            return "original"
        return "raw" if subscription.request.policy.use_raw else "soap"

    def candidates(self, request: web.Request) -> list[Subscription]:
        """The subscriptions that get messages of the parameter `topic`, or all without it."""
        topic = request.query.get("topic")
        if topic is None:
            return list(self._broker.subscriptions)
        parsed, tree = Topic.parse(topic), self._broker.tree
        return [] if tree.is_internal(parsed) else list(subscriptions_of(tree.match(parsed, accepted=True)))

    async def orders(self, request: web.Request) -> Mapping[str, Callable[[Subscription], Sortable]]:
        """The values that the parameter `sort` can name."""
        rates, letters = self._broker.delivery.rates, {}
        if request.query.get("sort", "").removeprefix("-") == "dead_letters":
            letters = await self._broker.journal.dead_letters_by_subscription()
        return {
            "waiting": lambda each: each.cursor.backlog,
            # Later entries have higher offsets. What waits for nothing comes last, as what ends never.
            "oldest": lambda each: _oldest_offset(each) or math.inf,
            "rate": rates.rate,
            "delivered": lambda each: each.progress.delivered,
            "dropped": lambda each: each.progress.dropped,
            "failures": lambda each: each.progress.failures,
            "dead_letters": lambda each: letters.get(each.id, 0),
            "created": lambda each: each.created,
            "terminates": lambda each: math.inf if each.terminates is None else each.terminates,
            "consumer": lambda each: each.request.consumer.address,
            "state": state_of,
            "kind": self.kind_of,
            "id": lambda each: each.id,
        }


def select(
    found: Iterable[Subscription], search: str, state: str | None
) -> tuple[list[Subscription], dict[str, int]]:
    """Those that have a text and a state, and for each state the number of those that have the text."""
    if state is not None and state not in STATES:
        raise bad(f"state is {shown(state)}; give {', '.join(STATES)}, or leave it out")
    if search:
        wanted = search.casefold()
        found = [each for each in found if _has(each, wanted)]
    states = [(state_of(each), each) for each in found]
    counts = Counter([name for name, _ in states])
    chosen = [each for name, each in states if state is None or name == state]
    return chosen, {name: counts[name] for name in STATES}


def state_of(subscription: Subscription) -> str:
    """One of STATES; a subscription is retrying while notifications wait for a consumer that failed."""
    if subscription.state is not State.LIVE:
        return EXPIRED
    if subscription.paused:
        return PAUSED
    return RETRYING if subscription.retrying else LIVE


def _reason(subscription: Subscription, state: str) -> str | None:
    """Why it gets nothing now; None if it gets what comes."""
    if state == EXPIRED:
        return "its termination time has passed; it ends after the grace period unless it is renewed"
    if state == PAUSED:
        return "it is paused; resume it to deliver what waits"
    if not subscription.producer_holds:
        return "the properties of this broker are not as its ProducerProperties filter wants them"
    return subscription.progress.last_error if state == RETRYING else None


def _has(subscription: Subscription, text: str) -> bool:
    """Whether the id, the consumer's address, a topic or a filter has a text in folded case."""
    return (
        text in subscription.id
        or text in subscription.request.consumer.address.casefold()
        or any(text in each.text.casefold() for each in subscription.topics)
        or any(text in each.expression.casefold() for each in subscription.content)
    )


def _oldest_offset(subscription: Subscription) -> int | None:
    """The first offset that waits in memory; None if nothing waits, or it was not looked for yet."""
    try:
        return subscription.cursor.waiting[0]
    except IndexError:
        return None

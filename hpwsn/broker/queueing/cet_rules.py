"""The queue discipline cet: the order of a queue, and the rules by which notifications leave it.

The discipline is that of event collection through communities, a protocol for subscribers that are reachable
only now and then. A queue gives the notification with the fewest transmissions first, and of equal ones the
youngest. A notification is dropped when its transmissions exceed `alpha`, or its age exceeds `beta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from hpwsn.broker.lifetimes.message_expiry import has_expired
from hpwsn.broker.queueing.transmissions import Transmissions
from hpwsn_client.wsn.operations.policy import DeliveryPolicy
from hpwsn_client.wsn.soap.times import Duration, format_time

CET = "cet"
ALPHA = 20
"""Transmissions that a notification may have, unless the policy says otherwise."""
BETA = Duration(seconds=2000)
"""The age that a notification may have, unless the policy says otherwise."""


@dataclass(frozen=True, slots=True)
class CetRules:
    """The bounds of one subscription's queue."""

    alpha: int = ALPHA
    beta: Duration = BETA

    def too_old(self, accepted: float, now: float) -> bool:
        """Whether the age of a notification exceeds `beta`."""
        return has_expired(self.beta, accepted, now)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Notifications that leave a queue by one of the rules."""

    offsets: Sequence[int]
    reason: str


def cet_rules(policy: DeliveryPolicy | None) -> CetRules | None:
    """The rules that a subscription asked for; None if its queue is first in, first out."""
    if policy is None or policy.discipline != CET:
        return None
    return CetRules(policy.alpha or ALPHA, policy.beta or BETA)


def first_of(waiting: Sequence[int], limit: int, known: Transmissions) -> list[int]:
    """The next offsets to send: fewest transmissions first, then the youngest."""

    def rank(offset: int) -> tuple[int, float, int]:
        return known.others(offset), -known.time(offset), -offset

    return nsmallest(limit, waiting, key=rank)


def stale(waiting: Iterable[int], rules: CetRules, known: Transmissions, now: float) -> list[Dropped]:
    """The waiting notifications that the rules drop now, by reason."""
    worn, old = [], []
    for offset in waiting:
        if known.others(offset) > rules.alpha:
            worn.append(offset)
        elif rules.too_old(known.time(offset), now):
            old.append(offset)
    found = (
        Dropped(worn, f"more than {rules.alpha} transmissions"),
        Dropped(old, f"older than {format_time(rules.beta)}"),
    )
    return [each for each in found if each.offsets]

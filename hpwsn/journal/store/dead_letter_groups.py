"""Dead letters by subscription and reason: groups for operators, and the statements that select letters.

Reasons that differ only in the consumer's address or in numbers of five digits and more have the same normal
form. SQLite groups by the stored reason, and `groups` joins the groups of the same normal form: a journal
with many dead letters has few reasons.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from hpwsn.journal.store.records import DeadLetterGroup

_REQUEST = re.compile(r"\APOST \S+: ")
_NUMBER = re.compile(r"\b[0-9]{5,}\b")
LONGEST_REASON = 300
"""Characters of a normal form."""

_GROUPS = (
    "SELECT subscription, reason, count(*), min(time), max(time), max(consumer) FROM dead_letters"
    " GROUP BY subscription, reason"
)
_BY_SUBSCRIPTION = "SELECT subscription, count(*) FROM dead_letters {} GROUP BY subscription"
_OF_SOME = "WHERE subscription IN (SELECT value FROM json_each(?))"
_REASONS = "SELECT DISTINCT reason FROM dead_letters WHERE {}"
_COUNT = "SELECT count(*) FROM dead_letters WHERE {}"
_LETTERS = (
    "SELECT json_group_array(json_array(offset, id, subscription, reason, time, consumer))"
    " FROM (SELECT * FROM dead_letters WHERE {} ORDER BY id LIMIT ?)"
)


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which dead letters: of one subscription, and of one normal form of the reason; None means any."""

    subscription: str | None = None
    reason: str | None = None


def normal_reason(reason: str) -> str:
    """The reason without the address of the request, with `#` for long numbers, in one line."""
    return _NUMBER.sub("#", " ".join(_REQUEST.sub("", reason).split()))[:LONGEST_REASON]


def groups(db: sqlite3.Connection) -> list[DeadLetterGroup]:
    """All groups, those with the most letters first."""
    found: dict[tuple[str, str], DeadLetterGroup] = {}
    for subscription, reason, count, first, last, consumer in db.execute(_GROUPS):
        key = subscription, normal_reason(reason)
        more = DeadLetterGroup(*key, count, first / 1e6, last / 1e6, consumer)
        found[key] = _joined(found[key], more) if key in found else more
    return sorted(found.values(), key=lambda group: (-group.count, group.subscription_id, group.reason))


def _joined(one: DeadLetterGroup, other: DeadLetterGroup) -> DeadLetterGroup:
    newest = max(one, other, key=lambda group: group.last)
    return DeadLetterGroup(
        one.subscription_id,
        one.reason,
        one.count + other.count,
        min(one.first, other.first),
        newest.last,
        newest.consumer,
    )


def letters(db: sqlite3.Connection, which: LetterFilter, limit: int, after: int) -> list[list[Any]]:
    """The columns of the dead letters with an id greater than `after`, in the order of their ids."""
    condition, values = _condition(db, which)
    row = db.execute(_LETTERS.format(f"id > ? AND {condition}"), (after, *values, limit)).fetchone()
    found: list[list[Any]] = json.loads(row[0])
    return found


def letter(db: sqlite3.Connection, number: int) -> list[list[Any]]:
    """The columns of one dead letter, in a list; an empty list if it does not exist."""
    found: list[list[Any]] = json.loads(db.execute(_LETTERS.format("id = ?"), (number, 1)).fetchone()[0])
    return found


def count_letters(db: sqlite3.Connection, which: LetterFilter) -> int:
    """The number of dead letters."""
    condition, values = _condition(db, which)
    return int(db.execute(_COUNT.format(condition), values).fetchone()[0])


def count_by_subscription(db: sqlite3.Connection, subscriptions: Collection[str] | None) -> dict[str, int]:
    """The number of dead letters of each of these subscriptions, or of all, that has some."""
    if subscriptions is None:
        return dict(db.execute(_BY_SUBSCRIPTION.format("")))
    return dict(db.execute(_BY_SUBSCRIPTION.format(_OF_SOME), (json.dumps(list(subscriptions)),)))


def _condition(db: sqlite3.Connection, which: LetterFilter) -> tuple[str, tuple[str, ...]]:
    of_subscription = "subscription = ?" if which.subscription is not None else "true"
    values = () if which.subscription is None else (which.subscription,)
    if which.reason is None:
        return of_subscription, values
    reasons = (row[0] for row in db.execute(_REASONS.format(of_subscription), values))
    wanted = [reason for reason in reasons if normal_reason(reason) == which.reason]
    return f"{of_subscription} AND reason IN (SELECT value FROM json_each(?))", (*values, json.dumps(wanted))

"""The journal: the log of accepted notifications by offset, its cursors, and the state kept for a restart."""

from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import (
    NO_TOPIC,
    DeadLetter,
    Durability,
    MessageId,
    Pruned,
    Pulled,
    PullPointRecord,
    Recovered,
    RegistrationRecord,
    Scan,
    State,
    Stored,
    SubscriptionRecord,
    UpstreamRecord,
)

__all__ = [
    "NO_TOPIC",
    "DeadLetter",
    "Durability",
    "Journal",
    "MessageId",
    "Pruned",
    "PullPointRecord",
    "Pulled",
    "Recovered",
    "RegistrationRecord",
    "Scan",
    "State",
    "Stored",
    "SubscriptionRecord",
    "UpstreamRecord",
]

"""The log and its cursors: every accepted notification at an offset, and what a restart carries on with."""

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

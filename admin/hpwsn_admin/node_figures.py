"""The figures of nodes that the admin node knows: others in a heartbeat are ignored."""

FIGURES = (
    "published_rate",
    "delivered_rate",
    "failed_rate",
    "waiting",
    "dead_letters",
    "subscriptions",
    "pull_points",
    "topics",
    "journal_bytes",
    "cpu",
    "memory",
    "threads",
    "files",
    "connections",
    "accept_p50",
    "accept_p99",
    "deliver_p50",
    "deliver_p99",
)

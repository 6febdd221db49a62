"""Runs for tests that need no door."""

from hpwsn.notification import END, Run
from hpwsn_client.wsn.topics.topic_expressions import Topic


def run_of(
    topic: Topic | str | None,
    *payloads: bytes,
    time: float = 1.0,
    message_id: str | None = None,
    target: str | None = None,
    routing: int = 0,
    before: bytes = b"",
    trace: str | None = None,
) -> Run:
    """A run of these payloads."""
    on = Topic.parse(topic) if isinstance(topic, str) else topic
    rest = time, message_id, target, routing, trace
    return Run(on, before, END.join((*payloads, b"")), len(payloads), *rest)

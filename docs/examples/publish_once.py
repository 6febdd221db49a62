"""Publish exactly once: a retry with the same message id is accepted, and not published again.

Run: python docs/examples/publish_once.py
Prints:
    accepted
"""

import time
from uuid import uuid4

from hpwsn_client import ConnectionFailed, SyncClient, TimedOut


def publish(client: SyncClient, topic: str, payload: str) -> None:
    """Try five times, with growing pauses."""
    message_id = str(uuid4())
    for pause in (0.5, 1, 2, 4):
        try:
            return client.notify(topic, payload, message_id=message_id)
        except (ConnectionFailed, TimedOut):
            time.sleep(pause)
    return client.notify(topic, payload, message_id=message_id)


with SyncClient() as client:
    publish(client, "examples:orders", "<order>17</order>")
    print("accepted")

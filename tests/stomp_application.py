"""A plain STOMP application beside a node, on the same ActiveMQ."""

from __future__ import annotations

import queue
import uuid
from typing import Any

import stomp

from tests.activemq import ActiveMQ
from tests.patience import PATIENCE


class StompApplication:
    """A plain STOMP application; messages that it gets are in `messages`, as headers and body."""

    def __init__(self, server: ActiveMQ) -> None:
        self.messages: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
        self.connection = stomp.Connection12([("127.0.0.1", server.stomp_port)], auto_decode=False)
        self.connection.set_listener("", self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *_: None
        raise AttributeError(name)

    def on_message(self, frame: Any) -> None:
        self.messages.put((frame.headers, frame.body))

    def __enter__(self) -> StompApplication:
        self.connection.connect(wait=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.disconnect(receipt=uuid.uuid4().hex)

    def subscribe(self, destination: str) -> None:
        """Subscribe, and come back when ActiveMQ has it."""
        done = stomp.listener.WaitingListener("subscribed")
        self.connection.set_listener("wait", done)
        self.connection.subscribe(destination, id="1", headers={"receipt": "subscribed"})
        done.wait_on_receipt()
        self.connection.remove_listener("wait")

    def get(self) -> tuple[dict[str, str], bytes]:
        return self.messages.get(timeout=PATIENCE)

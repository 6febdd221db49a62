"""A plain AMQP 1.0 application beside a node, on the same ActiveMQ, by Qpid Proton."""

from __future__ import annotations

import uuid
from types import TracebackType
from typing import Any, Self

from proton import Message
from proton.reactor import DurableSubscription
from proton.utils import BlockingConnection, BlockingReceiver

from tests.patience import PATIENCE


class AmqpApplication:
    """One connection; its name is the client id that a durable subscription belongs to."""

    def __init__(self, port: int, name: str | None = None, **more: Any) -> None:
        self.url = f"amqp://127.0.0.1:{port}"
        self.name = name or f"application-{uuid.uuid4().hex[:8]}"
        self._more = more

    def __enter__(self) -> Self:
        self.connection = BlockingConnection(self.url, timeout=PATIENCE, container_id=self.name, **self._more)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.connection.close()

    def send(self, topic: str, message: Message) -> None:
        """Publish to `topic://TOPIC`, and come back when ActiveMQ has it."""
        sender = self.connection.create_sender(f"topic://{topic}")
        sender.send(message)
        sender.close()

    def subscribe(self, topic: str) -> BlockingReceiver:
        """A subscription that ends with the connection."""
        return self.connection.create_receiver(f"topic://{topic}")

    def subscribe_durably(self, topic: str, name: str = "durable") -> BlockingReceiver:
        """A subscription that outlives the connection; the same name takes it up again."""
        return self.connection.create_receiver(f"topic://{topic}", name=name, options=DurableSubscription())


def receive(receiver: BlockingReceiver) -> Message:
    """The next message, acknowledged."""
    message = receiver.receive(timeout=PATIENCE)
    receiver.accept()
    return message

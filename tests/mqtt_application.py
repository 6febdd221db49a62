"""An MQTT application by paho, as somebody else writes one."""

from __future__ import annotations

import queue
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from paho.mqtt import client as mqtt

from tests.activemq import ActiveMQ
from tests.patience import PATIENCE


@contextmanager
def mqtt_application(server: ActiveMQ, topic: str | None = None) -> Iterator[tuple[mqtt.Client, Any]]:
    """A plain MQTT application, subscribed to a topic if one is named."""
    messages: queue.Queue[tuple[str, bytes]] = queue.Queue()
    ready: queue.Queue[bool] = queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=uuid.uuid4().hex)
    client.on_message = lambda client, data, message: messages.put((message.topic, message.payload))
    client.on_connect = lambda *_: ready.put(True) if topic is None else client.subscribe(topic, 1) and None
    client.on_subscribe = lambda *_: ready.put(True)
    client.connect("127.0.0.1", server.mqtt_port)
    client.loop_start()
    ready.get(timeout=PATIENCE)
    try:
        yield client, messages
    finally:
        client.disconnect()
        client.loop_stop()

"""Webhooks for tests: requests to the addresses under /subscriptions, and what their consumers got."""

from __future__ import annotations

import hmac
import io
import json
from typing import Any

import aiohttp

from tests.consumer import Consumer
from tests.harness import NodeProcess

SECRET = "京 secret"


async def ask(method: str, url: str, body: object = None) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object of an answer; of an empty one, an empty object."""
    data = None if body is None else io.BytesIO(json.dumps(body).encode())
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, data=data, headers={"Content-Type": "application/json"}) as response,
    ):
        text = await response.text()
        return response.status, json.loads(text) if text else {}


async def create(node: NodeProcess, consumer: Consumer | str, **fields: object) -> str:
    """Create a webhook and return its address."""
    callback = consumer if isinstance(consumer, str) else consumer.url
    status, answer = await ask("POST", f"{node.base}/subscriptions", {"callback": callback, **fields})
    assert status == 201, answer
    url: str = answer["url"]
    return url


async def show(url: str) -> dict[str, Any]:
    """A subscription as its address shows it."""
    status, answer = await ask("GET", url)
    assert status == 200, answer
    return answer


async def listed(node: NodeProcess, query: str = "") -> dict[str, Any]:
    """A page of the list."""
    return await show(f"{node.base}/subscriptions{query}")


async def publish(node: NodeProcess, topic: str, *events: object) -> None:
    """Publish events in JSON."""
    status, answer = await ask("POST", f"{node.base}/topics/{topic}/events", list(events))
    assert status == 202, answer


def events_of(consumer: Consumer) -> list[dict[str, Any]]:
    """All events that a consumer got, in the order of their arrival."""
    return [event for body in consumer.requests for event in json.loads(body)]


def data_of(consumer: Consumer) -> list[Any]:
    """The data of all events that a consumer got."""
    return [event["data"] for event in events_of(consumer)]


def is_signed(consumer: Consumer, secret: str = SECRET) -> bool:
    """Whether every request to a consumer has the signature of its body."""
    return all(
        headers["Hpwsn-Signature"] == "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()
        for headers, body in zip(consumer.headers, consumer.requests, strict=True)
    )

"""Announcing a consumer to an HPwsn broker: what waits for it is delivered at once, not at the next retry.

The request is a POST in JSON to /presence beside the broker's SOAP address; other brokers do not have it.
"""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass

import aiohttp

from hpwsn_client.environment import authorization
from hpwsn_client.errors import BadReply, ConnectionFailed

LARGEST_REPLY = 1 << 16
"""Bytes of a reply that are read."""


@dataclass(frozen=True, slots=True)
class Woken:
    """How many subscriptions the broker has woken, and how many notifications waited for them."""

    subscriptions: int
    waiting: int


async def announce(
    broker: str, consumer: str, *, within: float, tls: ssl.SSLContext | None = None, token: str = ""
) -> Woken:
    """Tell the broker at this address that a consumer is reachable; `within` is in seconds."""
    url = presence_url(broker)
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=within)) as session,
            session.post(
                url,
                json={"consumer": consumer},
                headers=authorization(token),
                ssl=tls or True,
                allow_redirects=False,
            ) as response,
        ):
            status, content = response.status, await response.content.read(LARGEST_REPLY)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise ConnectionFailed(
            f"cannot announce {consumer} at {url} ({error or type(error).__name__})",
            url,
            remedy="check the broker's URL",
        ) from None
    return _parse(url, status, content)


def presence_url(broker: str) -> str:
    """The address for announcements of the broker with this SOAP address."""
    return broker.rstrip("/").removesuffix("/wsn") + "/presence"


def _parse(url: str, status: int, content: bytes) -> Woken:
    try:
        told = json.loads(content)
        if status == 200:
            return Woken(int(told["subscriptions"]), int(told["waiting"]))
        reason = str(told["error"])
    except (ValueError, KeyError, TypeError):
        reason = "it is not an HPwsn broker, or one of an earlier version"
    raise BadReply(f"{url} replied with status {status}: {reason}", url, status)

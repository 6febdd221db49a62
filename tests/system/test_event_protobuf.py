"""Protocol Buffers at the topic's events of a real node, with protobuf's own classes as the client."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
from google.protobuf import json_format

from hpwsn.door.protobuf.event_messages import _Events
from tests.harness import NodeProcess

PROTOBUF = "application/x-protobuf"


async def test_events_in_protocol_buffers_are_those_of_json(node: NodeProcess) -> None:
    posted = [{"speed": 61.5, "lane": 2, "tags": ["a", "b"], "place": {"x": 1}, "on": True, "none": None}]
    url = f"{node.base}/topics/pb:cars/events"
    async with aiohttp.ClientSession() as session:
        sent = json_format.ParseDict({"events": posted}, _Events()).SerializeToString()
        async with session.post(url, data=sent, headers={"Content-Type": PROTOBUF}) as answer:
            assert answer.status == 202, await answer.text()
            first = (await answer.json())["first"]
        async with session.get(url) as answer:
            (plain,) = await answer.json()
        assert plain["data"] == posted[0]
        params = {"filter": "speed > 60"}
        async with session.get(url, params=params, headers={"Accept": PROTOBUF}) as answer:
            assert (answer.status, answer.content_type) == (200, PROTOBUF)
            assert answer.headers["Hpwsn-After"] == str(first)
            found: Any = _Events.FromString(await answer.read())
        assert json_format.MessageToDict(found)["events"] == [json.loads(json.dumps(plain))]


async def test_a_body_that_is_not_the_message_is_refused_and_stores_nothing(node: NodeProcess) -> None:
    url = f"{node.base}/topics/pb:bad/events"
    async with aiohttp.ClientSession() as session:
        async with session.post(url, data=b"{}", headers={"Content-Type": PROTOBUF}) as answer:
            assert answer.status == 400
            assert "hpwsn.v1.Events" in (await answer.json())["error"]
        async with session.get(url) as answer:
            assert await answer.json() == []

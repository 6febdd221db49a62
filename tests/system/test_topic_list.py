"""The list of topics of a real node: its shape, its order, its pages, and its figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hpwsn.topics.editing.topic_edit import etag_of
from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.harness import NodeProcess
from tests.internal_topics import PLATE, get, publish_both
from tests.internal_topics import post as post_events
from tests.patience import eventually
from tests.raw_soap import FULL, call, notify, subscribe
from tests.webhooks import create
from tests.webhooks import listed as subscriptions_of

TREE = """\
[topics.road]
description = "All roads"
routing = "tcp"
[topics.road.ring]
description = "The Ring Road, measured"
[topics.road.ring.lane1]
[topics.road.A4]
[topics.namespace]
[topics.anpr]
visibility = "internal"
[topics.anpr.lane1]
"""


@pytest.fixture(name="node")
def node_with_tree(tmp_path: Path) -> Iterator[NodeProcess]:
    file = tmp_path / "topics.toml"
    file.write_text(TREE)
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as running:
        yield running


async def listed(node: NodeProcess, query: str = "") -> dict[str, Any]:
    status, _, body = await get(node, f"/topics{query}")
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    assert set(found) == {"revision", "items", "next", "total"}
    return found


async def names(node: NodeProcess, query: str = "") -> list[str]:
    return [item["topic"] for item in (await listed(node, query))["items"]]


async def error(node: NodeProcess, path: str) -> tuple[int, str]:
    status, headers, body = await get(node, path)
    assert headers["Content-Type"].startswith("application/json")
    told = json.loads(body)
    assert set(told) == {"error"}
    return status, told["error"]


async def pull_subscription(node: NodeProcess, topic: str | None, more: str = "", **given: Any) -> str:
    point = (await call(node.url, "<w:CreatePullPoint/>")).text(".//a:Address")
    reply = await call(node.url, subscribe(point, topic, filters=more, **given))
    assert reply.status == 200, reply.body
    return reply.text(".//a:Address")


async def test_a_topic_has_exactly_these_fields(node: NodeProcess) -> None:
    found = await listed(node, "?under=road&depth=1&limit=1")
    assert found["total"] == 2
    assert found["items"] == [
        {
            "topic": "road:A4",
            "name": "A4",
            "level": 2,
            "namespace": "urn:hpwsn:topics",
            "description": "",
            "routing": None,
            "visibility": "public",
            "declared": True,
            "children": 0,
            "subscribers": 0,
            "subscribers_below": 0,
            "rate": 0.0,
            "rate_below": 0.0,
            "last": None,
            "etag": etag_of(Declaration(Topic.parse("road:A4"))),
        }
    ]
    _, _, body = await get(node, "/topics/road")
    road = json.loads(body)
    assert (road["routing"], road["description"], road["children"]) == ("tcp", "All roads", 2)
    assert {**found["items"][0], **road} == road


async def test_topics_are_in_tree_order_and_parameters_narrow_them(node: NodeProcess) -> None:
    everything = ["anpr", "anpr:lane1", "namespace", "road", "road:A4", "road:ring", "road:ring:lane1"]
    assert await names(node) == everything
    assert await names(node, "?depth=1") == ["anpr", "namespace", "road"]
    assert await names(node, "?depth=2") == everything[:-1]
    assert await names(node, "?under=road") == ["road:A4", "road:ring", "road:ring:lane1"]
    assert await names(node, "?under=road/ring&depth=1") == ["road:ring:lane1"]
    assert await names(node, "?under=road:A4") == []
    assert await names(node, "?q=RING") == ["road:ring"]
    assert await names(node, "?q=measured") == ["road:ring"]
    assert await names(node, "?q=lane1") == ["anpr:lane1", "road:ring:lane1"]
    assert await names(node, "?q=lane1&under=road") == ["road:ring:lane1"]
    assert await names(node, "?q=ring:l") == ["road:ring:lane1"]
    assert await names(node, "?q=nothing") == []


async def test_pages_have_every_topic_once_also_when_the_topic_of_the_cursor_is_gone(
    node: NodeProcess, tmp_path: Path
) -> None:
    first = await listed(node, "?limit=5")
    assert first["total"] == 7
    (tmp_path / "topics.toml").write_text(TREE.replace("[topics.road.A4]\n", ""))

    async def removed() -> bool:
        return (await listed(node))["total"] == 6

    await eventually(removed)
    second = await listed(node, f"?limit=5&after={first['next']}")
    assert [item["topic"] for item in second["items"]] == ["road:ring", "road:ring:lane1"]
    assert second["next"] is None
    assert second["revision"] != first["revision"]


async def test_wrong_parameters_get_errors_that_name_them(node: NodeProcess) -> None:
    assert (await error(node, "/topics?depth=0")) == (
        400, "depth is '0'; give a number of levels, 1 or more, or leave it out",
    )  # fmt: skip
    assert (await error(node, "/topics?limit=x"))[0] == 400
    assert (await error(node, "/topics?after=%7E"))[0] == 400
    assert (await error(node, "/topics?after=_w"))[0] == 400
    assert "limit, after" in (await error(node, "/topics?colour=red"))[1]
    assert (await error(node, "/topics?under=a%20b"))[0] == 400
    status, words = await error(node, "/topics?under=road:rin")
    assert (status, "did you mean road:ring?" in words) == (404, True)
    assert (await error(node, "/topics/road:rin"))[0] == 404
    assert (await error(node, "/topics/road?x=1"))[0] == 400
    status, words = await error(node, "/topics/road/ring")
    assert (status, "/topics/road:ring/events" in words) == (404, True)


async def test_named_topics_are_on_one_page_in_tree_order_without_those_that_do_not_exist(
    node: NodeProcess,
) -> None:
    found = await listed(node, "?topic=road:ring&topic=anpr&topic=road/ring&topic=road:gone")
    assert [item["topic"] for item in found["items"]] == ["anpr", "road:ring"]
    assert (found["next"], found["total"]) == (None, 2)
    assert found["items"][1] == json.loads((await get(node, "/topics/road:ring"))[2])
    assert await names(node, "?topic=gone") == []
    assert (await error(node, "/topics?topic=a%20b"))[0] == 400
    assert "topic goes without depth" in (await error(node, "/topics?topic=road&depth=1"))[1]
    many = "&".join(["topic=a"] * 1001)
    assert "1001 topics are named" in (await error(node, f"/topics?{many}"))[1]


async def test_topics_with_the_names_of_other_addresses_are_found_with_their_namespace(
    node: NodeProcess,
) -> None:
    status, headers, _ = await get(node, "/topics/namespace")
    assert (status, headers["Content-Type"]) == (200, "text/xml; charset=utf-8")
    status, _, body = await get(node, f"/topics/{quote('{urn:hpwsn:topics}namespace')}")
    assert (status, json.loads(body)["topic"]) == (200, "namespace")


async def test_internal_topics_are_listed_without_their_payloads(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text('[topics.traffic]\n[topics.traffic.anpr]\nvisibility = "internal"\n')
    with file.open("a") as more:
        more.write("[topics.traffic.anpr.lane1]\n[topics.traffic.flow]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        await pull_subscription(node, "traffic")
        await pull_subscription(node, None)
        await publish_both(node)
        status, _, body = await get(node, "/topics")
        assert status == 200
        assert PLATE not in body.decode()
        found = {item["topic"]: item for item in json.loads(body)["items"]}
        assert [item["visibility"] for item in found.values()] == ["public", "internal", "internal", "public"]
        assert [item["subscribers"] for item in found.values()] == [2, 0, 0, 2]
        assert [item["subscribers_below"] for item in found.values()] == [2, 0, 0, 2]


async def test_subscribers_are_counted_once_with_all_below(node: NodeProcess) -> None:
    content = '<w:MessageContent Dialect="urn:hpwsn:predicates">speed > {}</w:MessageContent>'
    await pull_subscription(node, None)
    await pull_subscription(node, "road")
    await pull_subscription(node, "road/*/lane1", dialect=FULL)
    first = await pull_subscription(node, "road:ring", content.format(60))
    await pull_subscription(node, "road:ring", content.format(70))

    async def counts() -> dict[str, tuple[int, int]]:
        items = (await listed(node, "?under=road"))["items"]
        return {item["topic"]: (item["subscribers"], item["subscribers_below"]) for item in items}

    before = await counts()
    assert before == {"road:A4": (2, 2), "road:ring": (4, 5), "road:ring:lane1": (5, 5)}
    assert (await call(first, "<w:Unsubscribe/>")).status == 200
    assert await counts() == {"road:A4": (2, 2), "road:ring": (3, 4), "road:ring:lane1": (4, 4)}


async def test_rates_and_last_messages_count_soap_and_json(node: NodeProcess) -> None:
    await call(node.url, notify("road:ring", "<x/>", "<x/>"))
    await post_events(node, "road:ring:lane1", {"n": 1}, {"n": 2})
    item: dict[str, Any] = {}

    async def counted() -> bool:
        item.update(json.loads((await get(node, "/topics/road:ring"))[2]))
        return bool(item["rate"] and item["rate_below"] == 2 * item["rate"])

    await eventually(counted)
    _, _, body = await get(node, "/topics/road:ring/events")
    second = json.loads(body)[1]
    assert item["last"]["offset"] == second["offset"]
    assert item["last"]["time"].startswith(second["time"][:-9])
    top = json.loads((await get(node, "/topics/road"))[2])
    assert (top["rate"], top["last"]) == (0.0, None)
    assert top["rate_below"] > 0


async def test_the_busiest_topics_come_first_on_one_page(node: NodeProcess) -> None:
    await post_events(node, "road:ring", {"n": 1})
    await post_events(node, "road:ring:lane1", {"n": 1}, {"n": 2}, {"n": 3})
    await post_events(node, "road:A4", {"n": 1}, {"n": 2})
    page: dict[str, Any] = {}

    async def counted() -> bool:
        page.update(json.loads((await get(node, "/topics?sort=-rate"))[2]))
        return len(page["items"]) == 3

    await eventually(counted)
    assert [item["topic"] for item in page["items"]] == ["road:ring:lane1", "road:A4", "road:ring"]
    assert (page["next"], page["total"], set(page)) == (None, 3, {"revision", "items", "next", "total"})
    two = json.loads((await get(node, "/topics?sort=-rate&limit=2"))[2])
    assert [item["topic"] for item in two["items"]] == ["road:ring:lane1", "road:A4"]
    assert two["next"] is None
    below = json.loads((await get(node, "/topics?sort=-rate&under=road:ring"))[2])
    assert [item["topic"] for item in below["items"]] == ["road:ring:lane1"]
    assert "give -rate" in (await error(node, "/topics?sort=rate"))[1]


async def test_the_last_message_is_known_after_a_restart(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    await post_events(node, "a:b", {"n": 1})
    before = (await listed(node))["items"]
    node.kill()
    with NodeProcess(tmp_path / "data") as again:
        items = (await listed(again))["items"]
        assert [item["last"] for item in items] == [item["last"] for item in before]
        assert items[1]["last"]["offset"] == 1
        assert items[1]["declared"] is False


async def test_ten_thousand_topics_and_a_thousand_subscriptions_are_paged_to_the_end(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(
        "".join(f"[topics.R{a}.B{b}.C{c}]\n" for a in range(10) for b in range(10) for c in range(100))
    )
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        webhooks = {
            (await create(node, f"http://127.0.0.1:9/{n}", topic=f"R{n % 10}")).rsplit("/", 1)[1]
            for n in range(1000)
        }
        found: list[dict[str, Any]] = []
        query, pages = "?limit=1000", 0
        while query:
            page = await listed(node, query)
            assert page["total"] == 10_110
            found += page["items"]
            pages += 1
            query = f"?limit=1000&after={page['next']}" if page["next"] else ""
        assert pages == 11
        assert len({item["topic"] for item in found}) == 10_110
        seen: set[str] = set()
        for item in found:
            above = item["topic"].removesuffix(item["name"]).removesuffix(":")
            assert not above or above in seen
            seen.add(item["topic"])
            assert item["subscribers"] == item["subscribers_below"] == 100
        assert (await listed(node, "?depth=1"))["total"] == 10
        assert (await listed(node, "?q=c99"))["total"] == 100
        ids, query, pages = [], "?limit=300", 0
        while query:
            page = await subscriptions_of(node, query)
            assert page["total"] == 1000
            ids += [item["id"] for item in page["items"]]
            pages += 1
            query = f"?limit=300&after={page['next']}" if page["next"] else ""
        assert (pages, len(ids)) == (4, 1000)
        assert set(ids) == webhooks

"""Pull points for operators, and the end of those that nobody reads."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp

from hpwsn_client import Client
from hpwsn_client.wsn import UnableToCreatePullPointFault
from tests.harness import NodeProcess, hpwsn
from tests.patience import eventually
from tests.raw_soap import call, send

FIELDS = [
    *("id", "name", "reference", "created", "waiting", "oldest", "last_read", "terminates", "subscriptions")
]


async def get(node: NodeProcess, path: str = "/pullpoints") -> Any:
    reply = await send(f"{node.base}{path}", b"", method="GET")
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


async def end_of(node: NodeProcess) -> float:
    """When the only pull point ends."""
    (point,) = (await get(node))["items"]
    return datetime.fromisoformat(point["terminates"]).timestamp()


async def test_operators_see_what_waits_in_a_pull_point_and_destroy_it(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        point = await client.create_pull_point("mine")
        subscription = await client.subscribe("A", point)
        id_ = point.epr.address.rpartition("/")[2]
        assert await get(node) == {"items": [await get(node, f"/pullpoints/{id_}")], "next": None, "total": 1}
        (one,) = (await get(node))["items"]
        assert list(one) == FIELDS
        assert (one["id"], one["name"], one["reference"]) == (id_, "mine", point.epr.address)
        assert (one["waiting"], one["oldest"], one["last_read"], one["terminates"]) == (0, None, None, None)
        assert one["subscriptions"] == [subscription.epr.address.rpartition("/")[2]]
        await client.notify("A", "first")
        await client.notify("A", "second")

        async def two() -> bool:
            return bool((await get(node, f"/pullpoints/{id_}"))["waiting"] == 2)

        await eventually(two)
        one = await get(node, f"/pullpoints/{id_}")
        assert one["oldest"] > one["created"]
        await point.get_messages()
        one = await get(node, f"/pullpoints/{id_}")
        assert one["last_read"] > one["oldest"]
        shown = hpwsn("pullpoints", "show", id_, "--json", "--url", node.url)
        assert json.loads(shown.stdout) == one
        assert id_ in hpwsn("pullpoints", "list", "--url", node.url).stdout
        destroyed = hpwsn("pullpoints", "destroy", id_, "--url", node.url)
        assert (destroyed.stdout, destroyed.returncode) == (f"destroyed {id_}\n", 0)
        assert await get(node) == {"items": [], "next": None, "total": 0}
        assert (await call(subscription.epr.address, "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
        for method in ("GET", "DELETE"):
            reply = await send(f"{node.base}/pullpoints/{id_}", b"", method=method)
            assert (reply.status, list(json.loads(reply.body))) == (404, ["error"])
        assert hpwsn("pullpoints", "destroy", id_, "--url", node.url).returncode == 1


async def test_a_list_of_pull_points_has_pages(node: NodeProcess) -> None:
    async with Client(node.url) as client:
        for _ in range(5):
            await client.create_pull_point()
    found, query = [], "limit=2"
    while query:
        page = await get(node, f"/pullpoints?{query}")
        assert page["total"] == 5
        found += [point["id"] for point in page["items"]]
        query = page["next"] and f"limit=2&after={page['next']}"
    assert (len(set(found)), found) == (5, sorted(found))
    listed = json.loads(hpwsn("pullpoints", "list", "--json", "--url", node.url).stdout)
    assert [point["id"] for point in listed["items"]] == found
    reply = await send(f"{node.base}/pullpoints?sort=name", b"", method="GET")
    assert (reply.status, list(json.loads(reply.body))) == (400, ["error"])
    elsewhere = {"Origin": "http://evil.example"}
    async with (
        aiohttp.ClientSession(headers=elsewhere) as session,
        session.delete(f"{node.base}/pullpoints/{found[0]}") as response,
    ):
        assert (response.status, list(await response.json())) == (403, ["error"])


async def test_a_pull_point_with_a_lifetime_ends_with_its_subscriptions_when_nobody_reads(
    node: NodeProcess,
) -> None:
    async with Client(node.url) as client:
        forever = await client.create_pull_point()
        point = await client.create_pull_point(lifetime=0.5)
        subscription = await client.subscribe("A", point)

        async def ended() -> bool:
            return [each["reference"] for each in (await get(node))["items"]] == [forever.epr.address]

        await eventually(ended)
        assert (await call(subscription.epr.address, "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
        assert "nobody read it for 0.5 s" in node.log()


async def test_a_read_a_repeated_create_and_a_restart_begin_the_lifetime_anew(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        async with Client(node.url) as client:
            point = await client.create_pull_point("mine", lifetime=3600)
            created = await end_of(node)
            await point.get_messages()
            read = await end_of(node)
            assert created < read
            assert (await client.create_pull_point("mine")).epr == point.epr
            repeated = await end_of(node)
            assert read < repeated
            await client.create_pull_point("mine", lifetime=7200)
            longer = await end_of(node)
            assert longer - repeated > 3599
        node.kill()
        node.start()
        restarted = await end_of(node)
        assert longer < restarted < longer + 3600


async def test_the_setting_gives_a_lifetime_to_pull_points_that_asked_for_none(tmp_path: Path) -> None:
    settings = ("--set", "pull_points.idle_lifetime=0.5")
    with NodeProcess(tmp_path / "data", *settings) as node:
        async with Client(node.url) as client:
            await client.create_pull_point()
            kept = await client.create_pull_point(lifetime=3600)

            async def one_left() -> bool:
                return [each["reference"] for each in (await get(node))["items"]] == [kept.epr.address]

            await eventually(one_left)


async def test_a_lifetime_that_is_not_longer_than_zero_is_refused(node: NodeProcess) -> None:
    for lifetime in ("PT0S", "-PT5M", "5", "2099-01-01T00:00:00Z", "P9999Y", ""):
        body = f'<w:CreatePullPoint xmlns:hp="urn:hpwsn:1" hp:lifetime="{lifetime}"/>'
        assert (await call(node.url, body)).fault == UnableToCreatePullPointFault.__name__, lifetime
    assert (await get(node))["total"] == 0
    body = '<w:CreatePullPoint xmlns:hp="urn:hpwsn:1" hp:lifetime="PT0.001S"/>'
    assert (await call(node.url, body)).status == 200

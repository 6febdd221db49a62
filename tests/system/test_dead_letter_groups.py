"""Dead letters in pages and in groups: by subscription and reason, which operators replay and drop as one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from tests.consumer import Consumer
from tests.harness import NodeProcess, hpwsn
from tests.patience import eventually
from tests.raw_soap import call, notify, send, subscribe

ONCE = ("--set", "delivery.retry_for=0", "--set", "delivery.batch=1")


async def get(node: NodeProcess, path: str) -> Any:
    return json.loads((await send(f"{node.base}{path}", b"", method="GET")).body)


async def post(node: NodeProcess, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{node.base}{path}", json=body, headers=headers) as response,
    ):
        return response.status, await response.json()


@asynccontextmanager
async def seven_letters(tmp_path: Path) -> AsyncIterator[tuple[NodeProcess, Consumer, Consumer]]:
    """A node with dead letters of two subscriptions: three and one of the first, three of the second."""
    statuses = {"ill": 500, "other": 500}
    with NodeProcess(tmp_path / "data", *ONCE) as node:
        async with (
            Consumer(lambda number: statuses["ill"]) as ill,
            Consumer(lambda number: statuses["other"]) as other,
        ):
            await call(node.url, subscribe(ill.url, "A"))
            await call(node.url, subscribe(other.url, "B"))
            await call(node.url, notify("A", *(f"<n>{n}</n>" for n in range(3))))
            await call(node.url, notify("B", *(f"<n>{n}</n>" for n in range(3, 6))))

            async def dead(number: int) -> None:
                async def there() -> bool:
                    return bool((await get(node, "/deadletters"))["total"] == number)

                await eventually(there)

            await dead(6)
            statuses["ill"] = 404
            await call(node.url, notify("A", "<n>6</n>"))
            await dead(7)
            statuses |= {"ill": 202, "other": 202}
            yield node, ill, other


async def test_a_list_of_dead_letters_has_pages_with_a_total(tmp_path: Path) -> None:
    async with seven_letters(tmp_path) as (node, _, _):
        whole = await get(node, "/deadletters")
        assert (len(whole["items"]), whole["next"], whole["total"]) == (7, None, 7)
        ids, after = [], ""
        while after is not None:
            page = await get(node, f"/deadletters?limit=3&after={after}" if after else "/deadletters?limit=3")
            assert page["total"] == 7
            ids += [letter["id"] for letter in page["items"]]
            after = page["next"]
        assert ids == [letter["id"] for letter in whole["items"]]
        one = whole["items"][0]
        assert set(one) == {
            *("id", "time", "subscription", "consumer", "topic", "published", "offset", "reason")
        }
        mine = await get(node, f"/deadletters?subscription={one['subscription']}&limit=1")
        assert (len(mine["items"]), mine["total"]) == (1, 4)
        listed = json.loads(hpwsn("deadletters", "list", "--limit", "2", "--json", "--url", node.url).stdout)
        assert [letter["id"] for letter in listed["items"]] == ids[:2]


async def test_groups_count_letters_by_subscription_and_reason_the_largest_first(tmp_path: Path) -> None:
    async with seven_letters(tmp_path) as (node, ill, other):
        groups = await get(node, "/deadletters/groups")
        assert (groups["next"], groups["total"]) == (None, 3)
        assert [group["count"] for group in groups["items"]] == [3, 3, 1]
        smallest = groups["items"][2]
        assert set(smallest) == {"subscription", "reason", "count", "first", "last", "consumer"}
        assert (smallest["consumer"], smallest["first"]) == (ill.url, smallest["last"])
        assert "404" in smallest["reason"] and ill.url not in smallest["reason"]
        assert {group["consumer"] for group in groups["items"][:2]} == {ill.url, other.url}
        first = await get(node, "/deadletters/groups?limit=2&sort=last")
        rest = await get(node, f"/deadletters/groups?limit=2&sort=last&after={first['next']}")
        found = [*first["items"], *rest["items"]]
        assert sorted(group["last"] for group in found) == [group["last"] for group in found]
        assert (len(found), rest["next"], rest["total"]) == (3, None, 3)
        told = hpwsn("deadletters", "groups", "--url", node.url).stdout.splitlines()
        assert (told[0].split()[:2], [line.split()[0] for line in told[1:]]) == (
            ["COUNT", "SUBSCRIPTION"],
            ["3", "3", "1"],
        )
        for query in ("sort=size", "after=x", "limit=0", "group=1"):
            reply = await send(f"{node.base}/deadletters/groups?{query}", b"", method="GET")
            assert (reply.status, list(json.loads(reply.body))) == (400, ["error"]), query


async def test_a_group_is_replayed_and_dropped_alone(tmp_path: Path) -> None:
    async with seven_letters(tmp_path) as (node, ill, other):
        by_count = {
            (group["consumer"], group["count"]): group
            for group in (await get(node, "/deadletters/groups"))["items"]
        }
        refused, failed = by_count[ill.url, 1], by_count[ill.url, 3]
        which = {name: failed[name] for name in ("subscription", "reason")}
        letters = await get(
            node, f"/deadletters?subscription={failed['subscription']}&reason=" + quote(failed["reason"])
        )
        assert (len(letters["items"]), letters["total"]) == (3, 3)
        told = {"sent": 3, "ended": 0, "internal": 0, "delivered": 3, "failed": 0, "pending": 0}
        assert await post(node, "/deadletters/replay?wait=60", which) == (200, told)
        dropped = hpwsn(
            *("deadletters", "drop", "--subscription", refused["subscription"]),
            *("--reason", refused["reason"], "--json", "--url", node.url),
        )
        assert json.loads(dropped.stdout) == {"dropped": 1}
        left = await get(node, "/deadletters/groups")
        assert [(group["consumer"], group["count"]) for group in left["items"]] == [(other.url, 3)]


async def test_a_page_of_another_server_may_not_replay_or_drop(node: NodeProcess) -> None:
    for action in ("replay", "drop"):
        told = await post(node, f"/deadletters/{action}", {"all": True}, Origin="http://evil.example")
        assert (told[0], list(told[1])) == (403, ["error"])

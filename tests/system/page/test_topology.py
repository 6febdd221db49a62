"""The topology: drawing, tables, the panel of a node; nodes that die and return while they are watched."""

from __future__ import annotations

import json
import re
import secrets
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from page_pictures.browser import DESKTOP, PHONE, Scheme, Size
from playwright.async_api import Locator, Page, Route, expect

from hpwsn.routing.membership.signing import Signer
from tests.cluster import SECRET, AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess, quiet_port
from tests.patience import eventually
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import create, publish

CLUSTERS = {"one": "plant", "two": "plant", "three": "dock"}
LOST = (r"^50[234] GET .*/nodes/", r"^404 GET .*/history\?node=")
"""Requests about a node that has just died, or that is forgotten."""
MOST_ELEMENTS = 3000
HOSTILE = "<img src=x onerror=alert(1)>"


def drawn(page: Page, name: str) -> Locator:
    return page.locator(f'[data-testid="node"][data-name="{name}"]')


def panel(page: Page) -> Locator:
    return page.get_by_role("region", name="Selected node")


async def places(page: Page) -> dict[str, tuple[float, float]]:
    """Where each node is drawn."""
    found = {}
    for each in await page.get_by_test_id("node").all():
        box = await each.bounding_box()
        assert box is not None
        found[await each.get_attribute("data-name") or ""] = (box["x"], box["y"])
    return found


@pytest.fixture(params=["node", "admin"])
def served(request: pytest.FixtureRequest, admin: AdminProcess, members: dict[str, Member]) -> NodeProcess:
    """A node of a cluster, and the admin node."""
    return members["one"] if request.param == "node" else admin


async def test_a_lone_node_is_drawn_and_says_how_to_join_a_cluster(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, "topology")
    await expect(page.get_by_test_id("node")).to_have_count(1)
    await expect(page.get_by_test_id("node")).to_have_attribute("data-state", "alive")
    await expect(page.get_by_text("1 cluster, 1 of 1 node alive")).to_be_visible()
    await expect(page.get_by_text("hpwsn serve --admin")).to_be_visible()
    await page.get_by_test_id("node").click()
    await expect(panel(page)).to_contain_text("none: it is alone")


class TestTheDrawing:
    async def test_it_has_all_nodes_in_their_clusters(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "topology")
        for name, cluster in CLUSTERS.items():
            group = page.get_by_role("group", name=f"Cluster {cluster}")
            node = group.get_by_test_id("node").and_(drawn(page, name))
            await expect(node).to_have_attribute("data-state", "alive")
        await expect(page.get_by_role("button", name="one, alive, represents plant")).to_be_visible()
        await expect(page.get_by_text("2 clusters, 3 of 3 nodes alive")).to_be_visible()
        await expect(page.get_by_text("topology version")).to_be_visible()

    async def test_a_click_opens_what_is_known_of_a_node(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "topology")
        await drawn(page, "two").click()
        await expect(page).to_have_url(re.compile(r"/ui/topology\?id=two$"))
        shown = panel(page)
        await expect(shown.get_by_role("heading", name="two", exact=True)).to_be_visible()
        await expect(shown).to_contain_text(re.compile(r"Cluster\s*plant, second in line"))
        await expect(shown).to_contain_text(re.compile(r"Last heartbeat\s*\d\d:\d\d:\d\d"))
        await expect(shown).to_contain_text(re.compile(r"Held for it\s*nothing"))
        await expect(shown).to_contain_text("0 subscriptions and 0 pull points")
        await expect(shown).to_contain_text(re.compile("node two (is alive|of cluster plant joined)"))
        own_page = f"{members['two'].base}/ui/"
        await expect(shown.get_by_role("link", name=own_page)).to_have_attribute("href", own_page)
        await expect(shown.get_by_test_id("forget")).to_have_count(0)
        await page.reload()
        await expect(shown.get_by_role("heading", name="two", exact=True)).to_be_visible()
        await page.get_by_test_id("close-panel").click()
        await expect(shown).to_have_count(0)
        await expect(page).to_have_url(re.compile(r"/ui/topology$"))

    async def test_the_keyboard_reaches_every_node(
        self, open_page: OpenedPages, admin: AdminProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(admin, "topology")
        await page.get_by_role("button", name="Unconfirmed").focus()
        for name in ("three", "one", "two"):
            await page.keyboard.press("Tab")
            await expect(drawn(page, name)).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(panel(page).get_by_role("heading", name="two", exact=True)).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(panel(page)).to_have_count(0)

    async def test_links_show_their_traffic_in_the_measure_of_the_address(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "topology", size=(1440, 1200))
        async with Consumer() as good:
            for name in ("two", "three"):
                await create(members[name], good, topic="crossing")

            async def crosses() -> bool:
                await publish(members["one"], "crossing", *({"n": n} for n in range(20)))
                words = await page.locator(".map .label-text").all_text_contents()
                return any(re.fullmatch(r"(TCP|UDP|TCP, UDP) [\d.,]+ /s", word) for word in words)

            await eventually(crosses)
            link = page.get_by_role("table", name="Links").get_by_role("row").filter(has_text="one and three")
            await expect(link.first).to_contain_text(re.compile("tcp|udp"))
            await expect(link.first).to_contain_text("Up")
            await page.get_by_role("button", name="Bytes /s").click()
            await expect(page).to_have_url(re.compile(r"\?tab=bytes$"))
            await expect(page.locator(".map .label-text").first).to_contain_text(re.compile(r"B/s$"))

    async def test_many_nodes_of_a_cluster_are_small_and_few_elements(
        self, open_page: OpenedPages, shared_node: NodeProcess
    ) -> None:
        async def answer(route: Route) -> None:
            await route.fulfill(json=large_cluster(1200))

        async def prepare(page: Page) -> None:
            await page.route("**/cluster", answer)

        page = await open_page(shared_node, "topology", prepare=prepare)
        await expect(page.get_by_test_id("node")).to_have_count(1200)
        await expect(page.locator('[data-testid="node"][data-state="dead"]')).to_have_count(12)
        assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
        await drawn(page, "node-0700").focus()
        await page.keyboard.press("Enter")
        await expect(panel(page).get_by_role("heading", name="node-0700")).to_be_visible()


def large_cluster(size: int) -> dict[str, Any]:
    """What /cluster answers in a cluster with so many nodes, of which every hundredth is dead."""
    nodes = [
        {"name": f"node-{n:04}", "url": f"http://10.0.0.{n % 250}:8080", "host": "10.0.0.1", "port": 7000}
        | {"version": "0", "state": "alive" if n % 100 else "dead", "since": 1.0, "heartbeat_age": 1.0}
        | {"figures": {"published_rate": 1.0} if n % 100 else None}
        for n in range(size)
    ]
    clusters = [{"name": "field", "representative": "node-0001", "nodes": nodes}]
    return {"version": 1 << 50, "clusters": clusters, "links": [], "partial": None}


class TestTheTables:
    async def test_they_say_the_same_as_the_drawing(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "topology")
        await page.get_by_role("group", name="Show as").get_by_role("button", name="Table").click()
        await expect(page).to_have_url(re.compile(r"\?as=table$"))
        table = page.get_by_role("grid", name="Nodes")
        for name, cluster in CLUSTERS.items():
            row = table.get_by_test_id("node").and_(drawn(page, name))
            await expect(row).to_have_attribute("data-state", "alive")
            await expect(row).to_contain_text(cluster)
        await expect(page.locator(".map")).to_have_count(0)
        await page.reload()
        await drawn(page, "three").click()
        await expect(panel(page).get_by_role("heading", name="three")).to_be_visible()

    async def test_arrows_and_enter_open_a_row(
        self, open_page: OpenedPages, admin: AdminProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(admin, "topology?as=table")
        await drawn(page, "three").focus()
        await page.keyboard.press("ArrowDown")
        await expect(drawn(page, "one")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(panel(page).get_by_role("heading", name="one")).to_be_visible()

    async def test_the_scope_of_the_address_chooses_the_nodes(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "topology?scope=cluster:plant&as=table")
        await expect(page.get_by_test_id("node")).to_have_count(2)
        await expect(page.get_by_text("1 cluster, 2 of 2 nodes alive")).to_be_visible()

    async def test_on_a_phone_nodes_are_cards_and_the_panel_fills_the_screen(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "topology", size=PHONE)
        await expect(page.locator(".map")).to_have_count(0)
        await expect(page.get_by_test_id("node")).to_have_count(len(CLUSTERS))
        await expect(page.get_by_role("heading", name="dock")).to_be_visible()
        await expect(drawn(page, "two")).to_contain_text(re.compile(r"Alive.*in · .* out /s", re.DOTALL))
        await page.get_by_role("button", name="two").click()
        box = await panel(page).bounding_box()
        assert box is not None and box["width"] == PHONE[0]
        await panel(page).get_by_role("button", name="Topology").click()
        await expect(panel(page)).to_have_count(0)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["topology?id=two", "topology?as=table&id=two"])
async def test_it_is_accessible(
    open_page: OpenedPages,
    admin: AdminProcess,
    members: dict[str, Member],
    view: str,
    scheme: Scheme,
    size: Size,
) -> None:
    await assert_accessible(await open_page(admin, view, scheme=scheme, size=size))


async def test_a_killed_node_turns_dead_and_comes_back_while_it_is_watched(
    open_page: OpenedPages, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin"))
        nodes = {
            name: stack.enter_context(Member(tmp_path / name, name, cluster, admin.base))
            for name, cluster in CLUSTERS.items()
        }
        pages = [await open_page(place, "topology", expected=LOST) for place in (nodes["three"], admin)]
        before = []
        for page in pages:
            await expect(page.get_by_test_id("node")).to_have_count(len(CLUSTERS))
            before.append(await places(page))
        # What a dead node has is known from the figures that it sent while it was watched.
        await drawn(pages[0], "one").click()
        await expect(panel(pages[0])).to_contain_text("0 subscriptions and 0 pull points")
        await pages[0].get_by_test_id("close-panel").click()
        nodes["one"].kill()
        for page in pages:
            await expect(drawn(page, "one")).to_have_attribute("data-state", "dead")
            await expect(page.get_by_role("button", name="two, alive, represents plant")).to_be_visible()
            await expect(page.get_by_text("1 of 2 alive")).to_be_visible()
        assert [await places(page) for page in pages] == before
        await drawn(pages[0], "one").click()
        await expect(panel(pages[0])).to_contain_text("Start it again with the same data directory")
        await expect(panel(pages[0])).to_contain_text("answer 503 while it is away")
        await expect(panel(pages[0])).to_contain_text(f"curl -X DELETE '{admin.base}/nodes/one'")
        await expect(panel(pages[0])).to_contain_text("node one is dead")
        await pages[0].get_by_test_id("close-panel").click()
        nodes["one"].start()
        for page in pages:
            await expect(drawn(page, "one")).to_have_attribute("data-state", "alive")
            await expect(page.get_by_text("2 clusters, 3 of 3 nodes alive")).to_be_visible()
        assert [await places(page) for page in pages] == before
        nodes["two"].terminate()
        for page in pages:
            await expect(drawn(page, "two")).to_have_attribute("data-state", "left")
        await open_page.finish()


async def test_a_dead_node_is_forgotten_at_the_admin_node(open_page: OpenedPages, tmp_path: Path) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin"))
        one = stack.enter_context(Member(tmp_path / "one", "one", "plant", admin.base))
        two = stack.enter_context(Member(tmp_path / "two", "two", "plant", admin.base))
        pages = [await open_page(place, "topology?id=two", expected=LOST) for place in (one, admin)]
        two.kill()
        for page in pages:
            await expect(drawn(page, "two")).to_have_attribute("data-state", "dead")
        await expect(pages[0].get_by_test_id("forget")).to_have_count(0)
        await pages[1].get_by_test_id("forget").click()
        dialog = pages[1].get_by_role("dialog")
        await expect(dialog).to_contain_text("disappears from the topology of all nodes")
        await dialog.get_by_test_id("cancel").click()
        assert admin.states()["two"] == "dead"
        await pages[1].get_by_test_id("forget").click()
        await expect(dialog.get_by_test_id("ok")).to_have_text("Forget two")
        await dialog.get_by_test_id("ok").click()
        for page in pages:
            await expect(drawn(page, "two")).to_have_count(0)
        await expect(panel(pages[0])).to_contain_text("No node has this name")
        await expect(panel(pages[1])).to_have_count(0)
        assert admin.states() == {"one": "alive"}
        await open_page.finish()


async def test_the_names_and_addresses_of_others_are_only_text(
    open_page: OpenedPages, tmp_path: Path
) -> None:
    with AdminProcess(tmp_path / "admin") as admin:
        await announce(
            admin, HOSTILE, '"><script>alert(2)</script>'.replace("/", "\\"), "javascript:alert(3)"
        )
        page = await open_page(admin, f"topology?id={quote(HOSTILE)}", expected=LOST)
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
        await expect(drawn(page, HOSTILE)).to_have_count(1)
        await expect(panel(page).get_by_role("heading", name=HOSTILE)).to_be_visible()
        await expect(panel(page)).to_contain_text("javascript:alert(3)")
        assert await page.locator("a[href^='javascript']").count() == 0
        for view in ("topology?as=table", ""):
            await page.goto(f"{admin.base}/ui/{view}")
            await expect(drawn(page, HOSTILE)).to_contain_text(HOSTILE)
        assert await page.locator("img, script:not([src]):not([type='importmap'])").count() == 0
        await open_page.finish()


async def announce(admin: AdminProcess, name: str, cluster: str, url: str) -> None:
    """Register a node that is not there."""
    given = {"name": name, "cluster": cluster, "url": url, "host": "127.0.0.1", "port": quiet_port()}
    body = json.dumps({**given, "version": "0", "identity": "i", "session": "s"}).encode()
    signed = Signer(SECRET.encode()).headers(
        "POST", "/api/nodes", body, now=time.time(), nonce=secrets.token_hex(8)
    )
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{admin.base}/api/nodes", data=body, headers=signed) as answer,
    ):
        assert answer.status == 200, await answer.text()


async def test_positions_depend_on_names_and_membership_only(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, ready=False)
    found = await page.evaluate(
        """async () => {
          const { layout } = await import("./app/topology/layout.js");
          const node = (name, state = "alive") => ({ name, state, figures: { cpu: Math.random() } });
          const cluster = (name, representative, ...nodes) => ({ name, representative, nodes });
          const many = Array.from({ length: 30 }, (_, n) => node(`n${String(n).padStart(2, "0")}`));
          const leaders = new Map();
          const look = (...clusters) => JSON.stringify(layout(clusters, leaders).clusters.map((each) => [
            each.name, each.x, each.y,
            each.nodes.map((spot) => [spot.node.name, spot.x, spot.y, spot.squares]),
          ]));
          const before = look(
            cluster("b", "two", node("one"), node("two"), node("three")), cluster("a", "n00", ...many));
          const shuffled = [...many].reverse();
          const after = look(cluster("a", "n29", ...shuffled),
            cluster("b", "one", node("three", "left"), node("two", "dead"), node("one")));
          return [before, after];
        }"""
    )
    before, after = (json.loads(each) for each in found)
    assert before == after
    (a, ax, _, squares), (b, bx, _, boxes) = before
    assert (a, b, ax < bx) == ("a", "b", True)
    assert [name for name, *_ in boxes] == ["two", "one", "three"]
    assert len({(x, y) for _, x, y, _ in squares}) == 30 and all(small for *_, small in squares)
    assert not any(small for *_, small in boxes)

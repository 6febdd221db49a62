"""The overview: verdict, alerts, tiles, nodes, busiest topics, events, at a node and at the admin node."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from page_pictures.browser import PHONE
from playwright.async_api import Locator, Page, expect

from tests.cluster import AdminProcess, Member
from tests.consumer import Consumer
from tests.harness import NodeProcess, quiet_port
from tests.patience import eventually
from tests.system.page.axe import assert_accessible
from tests.system.page.opened_page import OpenedPages
from tests.webhooks import ask, create, publish

METRICS = ("published_rate", "delivered_rate", "deliver_p99", "waiting", "dead_letters", "journal_bytes")
SETTINGS = ("--set", "monitoring.alert_after=0", "--set", "monitoring.alert_keep=0")
LOST = (r"^50[234] GET .*/nodes/",)
"""Requests that were under way to a node that dies."""
MOST_ELEMENTS = 3000


def tile(page: Page, metric: str) -> Locator:
    return page.locator(f'[data-testid="tile"][data-metric="{metric}"]')


def value(page: Page, metric: str) -> Locator:
    return tile(page, metric).locator(".tile-value")


def row(page: Page, name: str) -> Locator:
    return page.locator(f'[data-testid="node"][data-name="{name}"]')


def alert(page: Page, name: str) -> Locator:
    return page.locator(f'[data-testid="alert"][data-name="{name}"]')


@pytest.fixture
def quick_node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node whose alerts come and go at once."""
    with NodeProcess(tmp_path / "data", "--name", "hall-1", *SETTINGS) as running:
        yield running


@pytest.fixture(params=["node", "admin"])
def served(request: pytest.FixtureRequest, admin: AdminProcess, members: dict[str, Member]) -> NodeProcess:
    """A node of a cluster, and the admin node."""
    return members["one"] if request.param == "node" else admin


class TestOneNode:
    async def test_a_new_node_shows_three_steps_above_its_tiles_until_the_user_leaves_them(
        self, open_page: OpenedPages, node: NodeProcess
    ) -> None:
        page = await open_page(node)
        await expect(page.get_by_role("heading", name="This node is ready")).to_be_visible()
        await expect(page.get_by_test_id("first-run")).to_be_visible()
        await expect(page.get_by_test_id("tile")).to_have_count(len(METRICS))
        await page.get_by_role("button", name="Show the overview").click()
        await expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        await expect(page.get_by_test_id("first-run")).to_have_count(0)
        await page.get_by_test_id("nav-topics").click()
        await page.get_by_test_id("nav-overview").click()
        await expect(page.get_by_role("heading", name="All is well")).to_be_visible()

    async def test_one_message_moves_the_tile_of_a_new_node_which_keeps_its_steps(
        self, open_page: OpenedPages, node: NodeProcess
    ) -> None:
        page = await open_page(node)
        await expect(tile(page, "published_rate")).to_contain_text("highest 0")
        await publish(node, "hello:world", {"n": 1})
        await expect(tile(page, "published_rate")).to_contain_text(re.compile(r"highest (0\.[1-9]|[1-9])"))
        await expect(page.get_by_test_id("first-run")).to_be_visible()

    async def test_traffic_of_others_replaces_the_three_steps(
        self, open_page: OpenedPages, node: NodeProcess
    ) -> None:
        page = await open_page(node)
        await expect(page.get_by_test_id("first-run")).to_be_visible()
        await publish(node, "ALL:METER", *({"n": n} for n in range(30)))
        await expect(page.get_by_test_id("first-run")).to_have_count(0)
        await expect(page.get_by_role("heading", name="All is well")).to_be_visible()

    async def test_tiles_show_what_is_published_delivered_and_waits(
        self, open_page: OpenedPages, quick_node: NodeProcess
    ) -> None:
        await publish(quick_node, "ALL:NEWS", {"n": 0})
        page = await open_page(quick_node)
        assert [
            await each.get_attribute("data-metric") for each in await page.get_by_test_id("tile").all()
        ] == [*METRICS]
        await expect(value(page, "waiting")).to_have_text("0")
        await expect(value(page, "deliver_p99")).to_have_text("–")
        async with Consumer() as good:
            await create(quick_node, good, topic="ALL:NEWS")
            await create(quick_node, f"http://127.0.0.1:{quiet_port()}/", topic="ALL:NEWS")
            await publish(quick_node, "ALL:NEWS", *({"n": n} for n in range(7)))
            await expect(value(page, "waiting")).to_have_text("7")
            await expect(tile(page, "delivered_rate")).to_contain_text(re.compile(r"highest [1-9]"))
            await expect(tile(page, "deliver_p99")).to_contain_text(
                re.compile(r"(p50|highest) [\d.]+ [µm]?s")
            )
        await expect(page.get_by_text("2 subscriptions · 2 topics")).to_be_visible()

    async def test_dead_letters_are_counted_in_red_and_as_growth(
        self, open_page: OpenedPages, quick_node: NodeProcess
    ) -> None:
        await publish(quick_node, "ALL:NEWS", {"n": 0})

        async def has_sample() -> bool:
            _, found = await ask("GET", f"{quick_node.base}/history?range=5m&metrics=dead_letters")
            return any(each is not None for each in found["series"]["dead_letters"]["mean"])

        # What there is at the first sample of a node did not grow.
        await eventually(has_sample)
        page = await open_page(quick_node)
        await expect(tile(page, "dead_letters")).to_contain_text("none in the last 5 min")
        async with Consumer(lambda number: 404) as refusing:
            full = {"maxQueue": 1, "overflow": "dead-letter"}
            await create(quick_node, refusing, topic="ALL:NEWS", delivery=full)
            await publish(quick_node, "ALL:NEWS", *({"n": n} for n in range(5)))
            await expect(value(page, "dead_letters")).to_have_text(re.compile(r"^[1-9]"))
            await expect(value(page, "dead_letters")).to_have_class(re.compile(r"\bbad\b"))
            await expect(tile(page, "dead_letters")).to_contain_text(re.compile(r"[1-9] in the last 5 min"))
        await expect(
            alert(page, "NewDeadLetters").get_by_role("link", name="Show dead letters")
        ).to_be_visible()

    async def test_an_alert_names_trouble_remedy_and_place_and_goes_when_it_is_over(
        self, open_page: OpenedPages, quick_node: NodeProcess
    ) -> None:
        await publish(quick_node, "ALL:NEWS", {"n": 0})
        page = await open_page(quick_node)
        await expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        port = quiet_port()
        url = await create(quick_node, f"http://127.0.0.1:{port}/", topic="ALL:NEWS")
        await publish(quick_node, "ALL:NEWS", {"n": 1})
        failing = alert(page, "ConsumersFailing")
        await expect(failing).to_contain_text(
            f"1 consumer fails. It is http://127.0.0.1:{port}/: connection refused, 1 waiting. Start"
        )
        changes = page.get_by_role("region", name="What changed").get_by_test_id("event")
        await expect(changes.filter(has_text=re.compile("1 consumer fails$"))).to_have_count(1)
        await expect(failing).to_contain_text("Start the consumer, or end its subscription")
        await expect(page.get_by_role("heading", name="1 problem needs attention")).to_be_visible()
        id_ = url.rpartition("/")[2]
        await expect(failing.get_by_role("link")).to_have_attribute("href", f"subscriptions?id={id_}")
        await ask("DELETE", url)
        await expect(failing).to_have_count(0)
        await expect(page.get_by_role("heading", name="All is well")).to_be_visible()

    async def test_the_range_is_in_the_address(self, open_page: OpenedPages, quick_node: NodeProcess) -> None:
        await publish(quick_node, "ALL:NEWS", {"n": 0})
        page = await open_page(quick_node)
        ranges = page.get_by_role("group", name="Time range")
        await expect(ranges.get_by_role("button", name="5 min")).to_have_attribute("aria-pressed", "true")
        await ranges.get_by_role("button", name="24 hours").click()
        await expect(page).to_have_url(re.compile(r"\?range=24h$"))
        await expect(page.get_by_text("Last 24 hours. One axis per column")).to_be_visible()
        await page.reload()
        await expect(ranges.get_by_role("button", name="24 hours")).to_have_attribute("aria-pressed", "true")
        await page.go_back()
        await expect(ranges.get_by_role("button", name="5 min")).to_have_attribute("aria-pressed", "true")

    async def test_the_busiest_topics_are_listed_with_their_subscribers(
        self, open_page: OpenedPages, quick_node: NodeProcess
    ) -> None:
        async with Consumer() as good:
            await create(quick_node, good, topic="ALL:METER")
            await publish(quick_node, "ALL:METER", *({"n": n} for n in range(40)))
            await publish(quick_node, "ALL:NEWS", {"n": 1})
            page = await open_page(quick_node)
            rows = page.locator(".busiest tr")
            await expect(rows).to_have_count(2)
            await expect(rows.first).to_contain_text(re.compile(r"ALL:METER.*/s.*1 subscriber"))
            await expect(rows.nth(1)).to_contain_text("0 subscribers")
            await rows.first.get_by_role("link").click()
            await expect(page).to_have_url(re.compile(r"/ui/topics\?topic=ALL(:|%3A)METER$"))

    async def test_what_happens_is_told_at_once_with_links(
        self, open_page: OpenedPages, quick_node: NodeProcess
    ) -> None:
        await publish(quick_node, "ALL:NEWS", {"n": 0})
        page = await open_page(quick_node)
        changes = page.get_by_role("region", name="What changed").get_by_test_id("event")
        await expect(changes.first).to_contain_text("node hall-1 started")
        async with Consumer() as good:
            await create(quick_node, good, topic="ALL:NEWS")
            await expect(changes.filter(has_text="created: subscription")).to_have_count(1)
            await expect(changes.get_by_role("link", name="ALL:NEWS")).to_have_attribute(
                "href", re.compile(r"^topics\?topic=ALL")
            )
        await page.get_by_role("link", name="All events").click()
        await expect(page).to_have_url(re.compile(r"\?tab=events$"))
        await expect(page.get_by_role("cell", name="anonymous").first).to_be_visible()
        await page.get_by_role("button", name="Overview").click()
        await expect(page.get_by_test_id("tile")).to_have_count(len(METRICS))

    async def test_all_events_are_read_in_pages_and_only_those_in_sight_are_elements(
        self, open_page: OpenedPages, tmp_path: Path
    ) -> None:
        total = 2500
        (tmp_path / "data").mkdir()
        lines = (
            {"n": n, "time": f"2025-01-01T00:{n // 60:02}:{n % 60:02}+00:00", "kind": "problem"}
            | {"text": f"event {n} <b>of many</b>", "who": ""}
            for n in range(1, total + 1)
        )
        (tmp_path / "data" / "events.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
        with NodeProcess(tmp_path / "data") as node:
            page = await open_page(node, "?tab=events")
            await expect(page.get_by_text(f"event {total} <b>of many</b>", exact=True)).to_be_visible()

            async def at_the_end() -> bool:
                await page.locator(".all-events .wrap").evaluate(
                    "box => { box.scrollTop = box.scrollHeight; }"
                )
                return await page.get_by_text("event 1 <b>of many</b>", exact=True).count() == 1

            await eventually(at_the_end)
            assert await page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
            await open_page.finish()


class TestACluster:
    async def test_the_matrix_has_every_node_and_leads_to_it(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        await publish(members["one"], "ALL:NEWS", {"n": 0})
        page = await open_page(served)
        for name in members:
            await expect(row(page, name)).to_have_attribute("data-state", "alive")
            await expect(row(page, name)).to_contain_text(re.compile(r"represents|plant"))
        await expect(page.get_by_text("3 of 3 nodes alive in 2 clusters")).to_be_visible()
        await expect(row(page, "two").locator(".spark").first).to_be_visible()
        await row(page, "two").get_by_role("link").click()
        await expect(page).to_have_url(re.compile(r"/ui/topology\?id=two$"))

    async def test_the_scope_of_the_address_chooses_the_nodes(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "?scope=cluster:plant")
        await expect(page.get_by_test_id("node")).to_have_count(2)
        await expect(page.get_by_text("2 of 2 nodes alive")).to_be_visible()
        await page.get_by_role("button", name="Cluster plant").click()
        await page.get_by_role("menuitem", name="three").click()
        await expect(page).to_have_url(re.compile(r"\?scope=node(:|%3A)three$"))
        await expect(page.get_by_test_id("node")).to_have_count(1)
        await expect(row(page, "three")).to_have_count(1)

    async def test_the_busiest_topics_are_those_of_all_nodes(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served)
        found = page.locator(".busiest")

        async def both() -> bool:
            for topic, name in (("ALL:METER", "two"), ("ALL:NEWS", "three")):
                await publish(members[name], topic, *({"n": n} for n in range(50)))
            shown = await found.inner_text()
            return "ALL:METER" in shown and "ALL:NEWS" in shown

        await eventually(both)
        await expect(found).to_contain_text("at the node with most of it")

    async def test_what_is_published_at_another_node_shows_too(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        page = await open_page(served, "?scope=node:two")

        async def moves() -> bool:
            await publish(members["two"], "ALL:NEWS", *({"n": n} for n in range(50)))
            return re.match(r"[1-9]", await value(page, "published_rate").inner_text()) is not None

        await eventually(moves)

    async def test_the_alerts_of_other_nodes_are_shown_with_their_names(
        self, open_page: OpenedPages, served: NodeProcess, members: dict[str, Member]
    ) -> None:
        url = await create(members["three"], f"http://127.0.0.1:{quiet_port()}/", topic="ALL:NEWS")
        try:
            await publish(members["three"], "ALL:NEWS", {"n": 1})

            async def failing() -> bool:
                _, found = await ask("GET", f"{members['three'].base}/alerts")
                return any(each["name"] == "ConsumersFailing" for each in found["items"])

            await eventually(failing)
            page = await open_page(served)
            await expect(alert(page, "ConsumersFailing")).to_contain_text("three")
            await expect(alert(page, "ConsumersFailing").get_by_role("link")).to_have_attribute(
                "href", re.compile(r"scope=node(:|%3A)three")
            )
        finally:
            await ask("DELETE", url)

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    async def test_it_is_accessible(
        self, open_page: OpenedPages, admin: AdminProcess, members: dict[str, Member], scheme: str
    ) -> None:
        await assert_accessible(await open_page(admin, "", scheme=scheme))  # type: ignore[arg-type]
        await assert_accessible(await open_page(admin, "?tab=events", scheme=scheme))  # type: ignore[arg-type]
        await assert_accessible(await open_page(admin, "", scheme=scheme, size=PHONE))  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["node", "admin"])
async def test_a_dead_node_is_a_problem_with_a_link_to_it(
    open_page: OpenedPages, tmp_path: Path, place: str
) -> None:
    with ExitStack() as stack:
        admin = stack.enter_context(AdminProcess(tmp_path / "admin", *SETTINGS))
        one = stack.enter_context(Member(tmp_path / "one", "one", "plant", admin.base, *SETTINGS))
        two = stack.enter_context(Member(tmp_path / "two", "two", "plant", admin.base, *SETTINGS))
        await admin.comes_to(lambda: admin.states() == {"one": "alive", "two": "alive"})
        page = await open_page(one if place == "node" else admin, expected=LOST)
        await expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        two.kill()
        await expect(row(page, "two")).to_have_attribute("data-state", "dead")
        await expect(row(page, "two")).to_contain_text(re.compile(r"Dead"))
        problem = alert(page, "NodesDead" if place == "node" else "NodeDead:two")
        await expect(problem).to_contain_text(re.compile(r"two.*Start the node again", re.DOTALL))
        await expect(page.get_by_role("heading", name="1 problem needs attention")).to_be_visible()
        await expect(page.get_by_text("1 of 2 nodes alive")).to_be_visible()
        await problem.get_by_role("link", name="Show node").click()
        await expect(page).to_have_url(re.compile(r"/ui/topology\?id=two$"))
        await open_page.finish()


async def test_nodes_topics_and_subscriptions_in_the_texts_of_events_become_links(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, ready=False)
    found = await page.evaluate(
        """async (texts) => {
          const { eventParts } = await import("./app/overview/event_text.js");
          return texts.map((text) => eventParts(text, ["one", "one two", "dock-1"])
            .map((part) => (part.view ? [part.text, part.view, part.query] : part.text)));
        }""",
        [
            "node one two is dead",
            "node one-more of cluster plant joined: http://node one.example",
            "created: subscription ab-1 to A:B, C//*, D for http://consumer/ to X for y",
            "ended: subscription ab-1 to all topics for http://consumer/",
            "nothing <a href='x'>here</a>",
        ],
    )
    assert found == [
        ["node ", ["one two", "topology", {"id": "one two"}], " is dead"],
        [
            "node one-more of cluster plant joined: http://node ",
            ["one", "topology", {"id": "one"}],
            ".example",
        ],
        [
            "created: subscription ",
            ["ab-1", "subscriptions", {"id": "ab-1"}],
            " to ",
            ["A:B", "topics", {"topic": "A:B"}],
            ", C//*, ",
            ["D", "topics", {"topic": "D"}],
            " for http://consumer/ to X for y",
        ],
        ["ended: subscription ab-1 to all topics for http://consumer/"],
        ["nothing <a href='x'>here</a>"],
    ]


async def test_the_texts_of_events_are_short_on_the_overview(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, ready=False)
    found = await page.evaluate(
        """async (texts) => {
          const { briefParts } = await import("./app/overview/event_text.js");
          return texts.map((text) => briefParts(text, ["one"]).map((part) => part.text).join(""));
        }""",
        [
            "alert ConsumersFailing: 2 consumers fail; the worst is http://consumer/: refused",
            "created: subscription 0123456789abcdef to A:B, D for http://consumer/",
            "created: subscription 0123456789abcdef to A:B, C//* for http://consumer/",
            "ended: subscription 0123456789abcdef to all topics for http://consumer/",
            "ended: subscription 0123456789abcdef to A:B for http://consumer/",
            "node one is dead",
        ],
    )
    assert found == [
        "2 consumers fail",
        "created: subscription 01234567… to A:B, D",
        "created: subscription 01234567… to A:B, C//*",
        "ended: subscription 01234567… to all topics",
        "ended: subscription 01234567… to A:B",
        "node one is dead",
    ]


async def test_the_newer_of_topology_and_cluster_counts(
    open_page: OpenedPages, shared_node: NodeProcess
) -> None:
    page = await open_page(shared_node, ready=False)
    found = await page.evaluate(
        """async () => {
          const { ratesBetween, withFigures, withTopology } = await import("./app/cluster.js");
          const node = (state, more) => ({ name: "n", state, ...more });
          const part = (one) => [{ name: "c", representative: null, nodes: [one] }];
          const links = [{ from: "n", to: "m" }];
          const cluster = { version: 5, clusters: part(node("alive", { figures: { cpu: 1 } })), links };
          const states = [4, 5, 6].map((version) => (
            withTopology(cluster, { version, clusters: part(node("dead")) })));
          const status = (uptime, accepted) => ({
            started: "s", uptime, published: { accepted },
            delivery: { delivered: 0, failures: { timeout: 1 } },
          });
          return [
            states.map((each) => [each.clusters[0].nodes[0], each.links.length])
              .map(([one, left]) => [one.state, one.figures, left]),
            withFigures(cluster, "n", { cpu: 2 }).clusters[0].nodes[0].figures,
            ratesBetween(status(1, 10), status(3, 30)), ratesBetween(status(3, 30), status(3, 30)),
            ratesBetween(undefined, status(3, 30)),
          ];
        }"""
    )
    alive = ["alive", {"cpu": 1}, 1]
    assert found == [
        [alive, alive, ["dead", None, 0]],
        {"cpu": 2},
        {"published_rate": 10, "delivered_rate": 0, "failed_rate": 0},
        {},
        {},
    ]

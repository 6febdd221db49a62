"""A queue that is full: the oldest lost or set aside, or publishers told to come back, as its policy says."""

import json
from pathlib import Path

import pytest

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import call, notify, send, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"


def _policy(overflow: str, limit: int) -> str:
    delivery = f'<hp:Delivery xmlns:hp="urn:hpwsn:1" maxQueue="{limit}" overflow="{overflow}"/>'
    return f"<w:SubscriptionPolicy>{delivery}</w:SubscriptionPolicy>"


async def _get(node: NodeProcess, path: str) -> dict[str, object]:
    answer: dict[str, object] = json.loads((await send(node.base + path, b"", method="GET")).body)
    return answer


async def _letters(node: NodeProcess) -> list[dict[str, object]]:
    return (await _get(node, "/deadletters"))["items"]  # type: ignore[return-value]


@pytest.fixture(params=[8, 1024])
def node(tmp_path: Path, request: pytest.FixtureRequest) -> NodeProcess:
    """With a window of offsets that is smaller, and larger, than the queues of these tests."""
    with NodeProcess(tmp_path / "data", "--set", f"delivery.window={request.param}") as running:
        yield running


@pytest.mark.parametrize("overflow", ["drop-oldest", "dead-letter"])
async def test_past_the_limit_the_oldest_go(node: NodeProcess, overflow: str) -> None:
    async with Consumer() as consumer, Consumer() as witness:
        asked = subscribe(consumer.url, "A", more=_policy(overflow, 20))
        reference = (await call(node.url, asked)).text(ADDRESS)
        await call(node.url, subscribe(witness.url, "A"))
        await call(reference, "<w:PauseSubscription/>")
        for start in range(0, 100, 10):
            await call(node.url, notify("A", *(f"<n>{n}</n>" for n in range(start, start + 10))))
        await witness.wait(lambda c: len(c.messages()) >= 100)
        id_ = reference.rsplit("/", 1)[1]

        async def relieved() -> bool:
            return (await _get(node, f"/subscriptions/{id_}"))["waiting"] == 20

        await eventually(relieved)
        await call(reference, "<w:ResumeSubscription/>")
        await consumer.wait(lambda c: len(c.messages()) >= 20)
        assert consumer.payloads() == [str(n) for n in range(80, 100)]
        letters = await _letters(node)
        totals = (await _get(node, "/status"))["delivery"]
    if overflow == "dead-letter":
        assert ([one["subscription"] for one in letters], totals["dropped"]) == ([id_] * 80, 0)
        assert "more than 20" in str(letters[0]["reason"])
    else:
        assert (letters, totals["dropped"]) == ([], 80)


async def test_a_queue_that_rejects_turns_publishers_away_until_there_is_room(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        xpath = (
            '<w:MessageContent Dialect="http://www.w3.org/TR/1999/REC-xpath-19991116">/n</w:MessageContent>'
        )
        asked = subscribe(consumer.url, "A", filters=xpath, more=_policy("reject", 10))
        reference = (await call(node.url, asked)).text(ADDRESS)
        await call(reference, "<w:PauseSubscription/>")
        for number in range(10):
            assert (await call(node.url, notify("A:B", f"<n>{number}</n>"))).status == 202
        refused = await call(node.url, notify("A:B", "<n>10</n>"))
        assert (refused.status, int(refused.headers["Retry-After"]) > 0) == (503, True)
        assert "a queue of 10" in "".join(refused.content.itertext())
        assert (await call(node.url, notify("A:B", "<other/>"))).status == 202
        assert (await call(node.url, notify("C", "<n/>"))).status == 202
        await call(reference, "<w:ResumeSubscription/>")
        await consumer.wait(lambda c: len(c.messages()) >= 10)

        async def room() -> bool:
            return (await call(node.url, notify("A:B", "<n>10</n>"))).status == 202

        await eventually(room)
        await consumer.wait(lambda c: len(c.messages()) >= 11)
        assert consumer.payloads() == [str(n) for n in range(11)]


async def test_the_nodes_own_limit_holds_for_those_that_ask_for_none(tmp_path: Path) -> None:
    settings = ("--set", "delivery.max_queue=5", "--set", "delivery.overflow=drop-oldest")
    with NodeProcess(tmp_path / "limited", *settings) as limited:
        async with Consumer() as consumer:
            reference = (await call(limited.url, subscribe(consumer.url, "A"))).text(ADDRESS)
            await call(reference, "<w:PauseSubscription/>")
            await call(limited.url, notify("A", *(f"<n>{n}</n>" for n in range(12))))
            limited.kill()
            limited.start()
            await call(reference, "<w:ResumeSubscription/>")
            await consumer.wait(lambda c: "11" in c.payloads())
            assert consumer.payloads() == [str(n) for n in range(7, 12)]


async def test_a_full_queue_that_rejects_still_does_so_after_a_restart(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "rejecting") as node:
        asked = subscribe("http://127.0.0.1:9/", "A", more=_policy("reject", 5))
        reference = (await call(node.url, asked)).text(ADDRESS)
        await call(reference, "<w:PauseSubscription/>")
        for number in range(5):
            assert (await call(node.url, notify("A", f"<n>{number}</n>"))).status == 202
        node.kill()
        node.start()
        assert (await call(node.url, notify("A", "<n>5</n>"))).status == 503

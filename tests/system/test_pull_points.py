"""Pull points: made, filled by subscriptions and by a Notify of their own, emptied in order, and durable."""

import contextlib
import sqlite3
from pathlib import Path

from lxml import etree

from tests import raw_soap
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import Reply, call, notify, subscribe

ADDRESS = "w:PullPoint/a:Address"


def _payloads(reply: Reply) -> list[str]:
    return ["".join(m[0].itertext()) for m in reply.content.iterfind(".//w:Message", raw_soap.NAMES)]


async def _get(address: str, maximum: int | None = None) -> list[str]:
    asked = "" if maximum is None else f"<w:MaximumNumber>{maximum}</w:MaximumNumber>"
    return _payloads(await call(address, f"<w:GetMessages>{asked}</w:GetMessages>"))


async def test_messages_wait_in_order_until_they_are_fetched(node: NodeProcess) -> None:
    address = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    reply = await call(node.url, subscribe(address, "A"))
    for number in range(5):
        await call(node.url, notify("A", f"<n>{number}</n>"))
    first = await call(address, "<w:GetMessages><w:MaximumNumber>2</w:MaximumNumber></w:GetMessages>")
    assert _payloads(first) == ["0", "1"]
    reference = first.content.findtext(".//w:SubscriptionReference/a:Address", namespaces=raw_soap.NAMES)
    assert reference == reply.text("w:SubscriptionReference/a:Address")
    assert await _get(address) == ["2", "3", "4"]
    assert await _get(address) == []


async def test_a_notify_to_the_pull_point_itself_goes_nowhere_else(node: NodeProcess) -> None:
    first = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    second = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    await call(node.url, subscribe(second))
    assert (await call(first, notify("A", "<n>direct</n>", "<n>too</n>"))).status == 202
    assert await _get(first) == ["direct", "too"]
    assert await _get(second) == []


async def test_what_waits_outlives_the_process_and_the_subscription(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    address = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    reply = await call(node.url, subscribe(address, "A"))
    await call(node.url, notify("A", "<n>1</n>"))
    await call(address, notify(None, "<n>2</n>"))
    node.kill()
    with node:
        await call(node.url, notify("A", "<n>3</n>"))
        assert (await call(reply.text("w:SubscriptionReference/a:Address"), "<w:Unsubscribe/>")).status == 200
        assert await _get(address) == ["1", "2", "3"]


async def test_a_destroyed_pull_point_is_unknown_and_takes_its_subscriptions_along(node: NodeProcess) -> None:
    address = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    reply = await call(node.url, subscribe(address, "A"))
    assert (await call(address, "<w:DestroyPullPoint/>")).content.tag.endswith("DestroyPullPointResponse")
    assert (await call(address, "<w:GetMessages/>")).fault == "ResourceUnknownFault"
    assert (await call(address, notify("A", "<n/>"))).fault == "ResourceUnknownFault"
    assert (await call(address, "<w:DestroyPullPoint/>")).fault == "ResourceUnknownFault"
    gone = await call(reply.text("w:SubscriptionReference/a:Address"), "<w:Unsubscribe/>")
    assert gone.fault == "ResourceUnknownFault"
    assert (await call(node.url, subscribe(address, "A"))).fault == "SubscribeCreationFailedFault"


async def test_the_same_name_gives_the_same_pull_point(node: NodeProcess) -> None:
    named = '<w:CreatePullPoint w:pullPointQueueName="mine"/>'
    first, again = await call(node.url, named), await call(node.url, named)
    other = await call(node.url, named.replace("mine", "yours"))
    assert first.text(ADDRESS) == again.text(ADDRESS) != other.text(ADDRESS)


async def test_the_current_message_is_of_the_topic_itself_and_survives_a_restart(tmp_path: Path) -> None:
    def current(topic: str) -> str:
        expression = f'<w:Topic Dialect="{raw_soap.SIMPLE}">{topic}</w:Topic>'
        return f"<w:GetCurrentMessage>{expression}</w:GetCurrentMessage>"

    node = NodeProcess(tmp_path / "data").start()
    assert (await call(node.url, current("A"))).fault == "NoCurrentMessageOnTopicFault"
    await call(node.url, notify("A", '<n xmlns="urn:n">1</n>', '<n xmlns="urn:n">2</n>'))
    await call(node.url, notify("A:B", "<plain>3</plain>"))
    assert node.terminate() == 0
    with node:
        reply = await call(node.url, current("A"))
        assert etree.tostring(reply.content[0], method="c14n", exclusive=True) == b'<n xmlns="urn:n">2</n>'
        below = (await call(node.url, current("A:B"))).content
        assert (below[0].tag, below[0][0].tag, below[0][0].text) == ("{urn:hpwsn:1}message", "plain", "3")
        several = current("*").replace(raw_soap.SIMPLE, raw_soap.FULL).replace("*", "A//.")
        assert (await call(node.url, several)).fault == "MultipleTopicsSpecifiedFault"


async def _queue_is_empty(node: NodeProcess) -> bool:
    with contextlib.closing(sqlite3.connect(node.data / "journal.db")) as database:
        count: tuple[int] = database.execute("SELECT count(*) FROM queue").fetchone()
    return count == (0,)


def _get_with(confirm: str) -> str:
    return f'<w:GetMessages><hp:Confirm xmlns:hp="urn:hpwsn:1">{confirm}</hp:Confirm></w:GetMessages>'


async def test_a_batch_is_handed_out_again_until_it_is_confirmed(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    address = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    await call(node.url, subscribe(address, "A"))
    await call(node.url, notify("A", "<n>1</n>", "<n>2</n>"))
    first = await call(address, _get_with(""))
    lost = await call(address, _get_with(""))
    assert _payloads(first) == _payloads(lost) == ["1", "2"]
    await call(node.url, notify("A", "<n>3</n>"))
    batch = lost.content.findtext("{urn:hpwsn:1}Batch")
    assert _payloads(await call(address, _get_with(batch or ""))) == ["3"]
    node.kill()
    with node:
        again = await call(address, _get_with(""))
        assert _payloads(again) == ["3"]
        last = again.content.findtext("{urn:hpwsn:1}Batch")
        assert _payloads(await call(address, _get_with(last or ""))) == []
        assert _payloads(await call(address, _get_with(""))) == []


async def test_without_a_confirmation_the_next_call_confirms_and_a_crash_does_not(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    address = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    await call(node.url, subscribe(address, "A"))
    await call(node.url, notify("A", "<n>1</n>"))
    assert await _get(address) == ["1"]
    node.kill()
    with node:
        assert await _get(address) == ["1"]
        assert await _get(address) == []
        await eventually(lambda: _queue_is_empty(node))
        node.kill()
    with node:
        assert await _get(address) == []


async def test_a_batch_counts_as_received_after_a_while_if_so_set(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", "--set", "pull_points.confirm_after=0.01").start()
    address = (await call(node.url, "<w:CreatePullPoint/>")).text(ADDRESS)
    await call(node.url, subscribe(address, "A"))
    await call(node.url, notify("A", "<n>1</n>"))
    assert await _get(address) == ["1"]
    await eventually(lambda: _queue_is_empty(node))
    node.kill()

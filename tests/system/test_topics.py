"""Fixed and open topic trees, as publishers and subscribers meet them."""

from pathlib import Path

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.raw_soap import call, notify, subscribe

TREE = """
[topics.ALL]
description = "everything"
[topics.ALL.ALARM]
[topics.ALL.ALARM.FIRE]
"""


async def test_a_fixed_tree_refuses_what_it_does_not_hold_and_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "topics.toml").write_text(TREE)
    with NodeProcess(tmp_path / "data", "--topics", str(tmp_path / "topics.toml")) as node:
        async with Consumer() as consumer:
            assert (await call(node.url, subscribe(consumer.url, "ALL"))).status == 200
            assert (await call(node.url, subscribe(consumer.url, "NONE"))).fault == "TopicNotSupportedFault"
            wildcard = subscribe(consumer.url, "X//*", dialect=raw_soap.FULL)
            assert (await call(node.url, wildcard)).fault == "TopicNotSupportedFault"
            half = notify("ALL", "<n>good</n>").replace("</w:Notify>", "") + notify(
                "ALL:ALRM", "<n>bad</n>"
            ).replace("<w:Notify>", "")
            refused = await call(node.url, half)
            assert (refused.status, refused.fault) == (500, "TopicNotSupportedFault")
            assert "ALL:ALARM" in "".join(refused.content.itertext())
            assert (await call(node.url, half, "1.2")).status == 400
            await call(node.url, notify("ALL:ALARM:FIRE", "<n>fire</n>"))
            await consumer.wait(lambda c: bool(c.requests))
            assert consumer.payloads() == ["fire"]


async def test_open_topics_appear_as_they_are_used(node: NodeProcess) -> None:
    async with Consumer() as consumer:
        await call(node.url, subscribe(consumer.url, "new"))
        await call(node.url, notify("new:deeper:still", "<n>1</n>"))
        await call(node.url, notify("other", "<n>2</n>"))
        await call(node.url, notify("new/slash", "<n>3</n>", dialect=None))
        await consumer.wait(lambda c: len(c.messages()) >= 2)
        assert consumer.payloads() == ["1", "3"]


async def test_simple_can_be_set_to_mean_the_topic_alone(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "topics.simple_subtree=false") as node:
        async with Consumer() as consumer:
            await call(node.url, subscribe(consumer.url, "A"))
            await call(node.url, notify("A:B", "<n>below</n>"))
            await call(node.url, notify("A", "<n>itself</n>"))
            await consumer.wait(lambda c: bool(c.requests))
            assert consumer.payloads() == ["itself"]

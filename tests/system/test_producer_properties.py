"""Subscribers that want notifications only while the broker's own properties are as they say."""

from pathlib import Path

import pytest

from tests import raw_soap
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import Reply, call, notify, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"
SCOPE = (
    'xmlns:br="http://docs.oasis-open.org/wsn/br-2" xmlns:top="http://docs.oasis-open.org/wsn/t-1"'
    ' xmlns:t="urn:hpwsn:topics"'
)


def producer(expression: str, dialect: str | None = raw_soap.XPATH) -> str:
    given = f' Dialect="{dialect}"' if dialect else ""
    return f"<w:ProducerProperties {SCOPE}{given}>{expression}</w:ProducerProperties>"


async def asked(node: NodeProcess, consumer: str, *filters: str, topic: str | None = "A") -> Reply:
    return await call(node.url, subscribe(consumer, topic, filters="".join(filters)))


async def test_a_subscriber_gets_all_while_the_condition_holds_and_nothing_while_not(
    node: NodeProcess,
) -> None:
    async with Consumer() as yes, Consumer() as no, Consumer() as plain:
        for consumer, expression in (
            (yes, "br:RequiresRegistration = 'false'"),
            (no, "br:RequiresRegistration = 'true'"),
        ):
            reply = await asked(node, consumer.url, producer(expression))
            assert reply.status == 200, reply.body
        await asked(node, plain.url)
        for number in range(5):
            await call(node.url, notify("A", f"<n>{number}</n>"))
        await plain.wait(lambda c: len(c.messages()) >= 5)
        await yes.wait(lambda c: len(c.messages()) >= 5)
        assert yes.payloads() == plain.payloads()
        assert not no.requests


async def test_the_condition_is_looked_at_again_when_topics_appear(node: NodeProcess) -> None:
    async with Consumer() as consumer, Consumer() as witness:
        await asked(node, consumer.url, producer("top:TopicSet/t:alarms"))
        await asked(node, witness.url)
        await call(node.url, notify("A", "<n>before</n>"))
        await witness.wait(lambda c: bool(c.requests))
        await call(node.url, notify("alarms:fire", "<n/>"))

        async def comes() -> bool:
            await call(node.url, notify("A", "<n>after</n>"))
            return bool(consumer.requests)

        await eventually(comes)
        assert set(consumer.payloads()) == {"after"}


async def test_filters_of_every_kind_must_hold_together_and_several_of_one_kind_too(
    node: NodeProcess,
) -> None:
    content = f'<w:MessageContent Dialect="{raw_soap.XPATH}">{{}}</w:MessageContent>'
    topic = f'<w:TopicExpression Dialect="{raw_soap.FULL}">A//.</w:TopicExpression>'
    held, other = "w:FixedTopicSet = 'false'", "w:FixedTopicSet = 'true'"
    big, small = content.format(". &gt; 1"), content.format(". &lt; 5")
    async with Consumer() as both, Consumer() as mixed, Consumer() as witness:
        await asked(node, both.url, topic, big, small, producer(held), producer("count(*) &gt; 3", None))
        await asked(node, mixed.url, topic, big, producer(held), producer(other))
        await asked(node, witness.url, topic=None)
        for on in ("A", "A:B", "B"):
            await call(node.url, notify(on, *(f"<n>{number}</n>" for number in (1, 3, 7))))
        await witness.wait(lambda c: len(c.messages()) >= 9)
        await both.wait(lambda c: len(c.messages()) >= 2)
        assert (both.payloads(), mixed.requests) == (["3", "3"], [])


async def test_the_filter_and_its_answer_survive_a_restart(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data").start()
    async with Consumer() as yes, Consumer() as no, Consumer() as witness:
        await asked(node, yes.url, producer("w:FixedTopicSet = 'false'"))
        await asked(node, no.url, producer("w:FixedTopicSet = 'true'"))
        await asked(node, witness.url)
        await call(node.url, notify("A", "<n>1</n>"))
        await yes.wait(lambda c: bool(c.requests))
        await witness.wait(lambda c: bool(c.requests))
        assert node.terminate() == 0
        with node:
            await call(node.url, notify("A", "<n>2</n>"))
            await yes.wait(lambda c: len(c.messages()) >= 2)
            await witness.wait(lambda c: len(c.messages()) >= 2)
            assert (yes.payloads(), no.requests) == (["1", "2"], [])


async def test_what_was_not_wanted_at_its_time_stays_away_from_one_that_fell_behind(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--set", "delivery.window=2") as node:
        async with Consumer() as consumer, Consumer() as witness:
            gone = await asked(node, witness.url, topic="alarms")
            reference = (await asked(node, consumer.url, producer("top:TopicSet/t:alarms"))).text(ADDRESS)
            await asked(node, witness.url)
            await call(reference, "<w:PauseSubscription/>")
            for number in range(6):
                await call(node.url, notify("A", f"<n>{number}</n>"))
            # The topic alarms goes with its last subscriber; a probe shows when that was seen.
            await call(gone.text(ADDRESS), "<w:Unsubscribe/>")
            async with Consumer() as probe:
                await asked(node, probe.url, producer("not(top:TopicSet/t:alarms)"))

                async def seen() -> bool:
                    await call(node.url, notify("A", "<n>gap</n>"))
                    return bool(probe.requests)

                await eventually(seen)
            await call(node.url, notify("A", "<n>never</n>"))
            await call(reference, "<w:ResumeSubscription/>")
            await consumer.wait(lambda c: len(c.messages()) >= 6)
            await call(node.url, notify("alarms", "<n/>"))

            async def comes() -> bool:
                await call(node.url, notify("A", "<n>after</n>"))
                return "after" in consumer.payloads()

            await eventually(comes)
            assert consumer.payloads()[:6] == [str(number) for number in range(6)]
            assert "never" not in consumer.payloads()


@pytest.mark.parametrize(
    "bad", [producer("a", "urn:other"), producer("a b"), producer("none:a"), producer("$x"), producer("")]
)
async def test_what_cannot_be_worked_out_is_the_standards_fault(shared_node: NodeProcess, bad: str) -> None:
    reply = await asked(shared_node, "http://127.0.0.1:9/", bad)
    assert (reply.status, reply.fault) == (500, "InvalidProducerPropertiesExpressionFault")

"""The discipline cet: fewest deliveries to others first, then the youngest; the old and the well known go."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from hpwsn.broker.housekeeping import Housekeeping, RetentionPolicy
from hpwsn.broker.outcomes.outcome import DeliveryOutcome, Result
from tests.cet_node import cet_node, has
from tests.consumer import Consumer
from tests.harness import NodeProcess, hpwsn
from tests.patience import eventually
from tests.raw_soap import call, subscribe
from tests.webhooks import ask, create, events_of, publish, show

CET = 'discipline="cet" batch="1"'
PAUSE, RESUME = "<w:PauseSubscription/>", "<w:ResumeSubscription/>"


def numbers(consumer: Consumer) -> list[int]:
    """The successful deliveries: the last request with each payload, in their order."""
    return [int(text) for text in consumer.payloads()]


async def test_a_consumer_that_was_away_gets_first_what_others_have_not_and_then_the_youngest(
    tmp_path: Path,
) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away, Consumer() as other:
        reference = await node.subscribed(away.url, CET)
        await call(reference, PAUSE)
        more = await node.subscribed(other.url, "")
        await node.publish(1, 2, 3)
        await other.wait(has(3))
        await call(more, PAUSE)
        await node.publish(4, 5, 6)
        await node.waits(reference, 6)
        await call(reference, RESUME)
        await away.wait(has(6))
        assert numbers(away) == [6, 5, 4, 3, 2, 1]
        await call(more, RESUME)
        await other.wait(has(6))
        assert numbers(other) == [1, 2, 3, 4, 5, 6]
        await node.waits(reference, 0)
        assert not node.node.parts.transmissions.watched


async def test_an_older_notification_goes_first_where_fewer_have_it(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away, Consumer() as other:
        reference = await node.subscribed(away.url, CET)
        await call(reference, PAUSE)
        await node.publish(1, 2)
        await node.subscribed(other.url, "")
        await node.publish(3, 4)
        await other.wait(has(2))
        await call(reference, RESUME)
        await away.wait(has(4))
        assert numbers(away) == [2, 1, 4, 3]


async def test_two_ranked_queues_share_the_counts(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Consumer() as first, Consumer() as second:
        references = [await node.subscribed(each.url, CET) for each in (first, second)]
        for reference in references:
            await call(reference, PAUSE)
        await node.publish(1, 2, 3)
        await call(references[0], RESUME)
        await first.wait(has(3))
        await node.publish(4)
        await first.wait(has(4))
        await node.waits(references[1], 4)
        counts = node.node.parts.transmissions
        assert [each.others for each in counts.watched.values()] == [1, 1, 1, 1]
        node.node.parts.transmissions.carried(list(counts.watched)[2:])
        await call(references[1], RESUME)
        await second.wait(has(4))
        assert numbers(second) == [2, 1, 4, 3]
        await node.waits(references[1], 0)
        assert not counts.watched


async def test_what_a_carrier_took_along_goes_after_what_nobody_has(tmp_path: Path) -> None:
    key, bundle = tmp_path / "key", tmp_path / "a.bundle"
    key.write_text("a text that the islands share")
    async with cet_node(tmp_path / "data", key_file=str(key)) as node, Consumer() as away:
        reference = await node.subscribed(away.url, f'{CET} alpha="2"')
        await call(reference, PAUSE)
        await node.publish(1, 2)
        command = ("dtn", "collect", "--url", node.url, "--out", str(bundle), "--to", "far")
        done = await asyncio.to_thread(hpwsn, *command)
        assert done.returncode == 0, done.stderr
        await node.publish(3)
        assert [each.others for each in node.node.parts.transmissions.watched.values()] == [1, 1, 0]
        for _ in range(2):
            assert (await asyncio.to_thread(hpwsn, *command, "--again")).returncode == 0
        await call(reference, RESUME)
        await away.wait(has(1))
        await node.waits(reference, 0)
        assert numbers(away) == [3]
        assert node.held(reference).progress.dropped == 2


async def test_what_has_more_transmissions_than_alpha_or_is_older_than_beta_is_dropped_and_counted(
    tmp_path: Path,
) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away, Consumer() as one, Consumer() as two:
        reference = await node.subscribed(away.url, f'{CET} alpha="1" beta="PT1M"')
        await call(reference, PAUSE)
        await node.publish(1)
        node.now += 50
        await node.publish(2)
        both = [await node.subscribed(each.url, "") for each in (one, two)]
        await node.publish(3)
        await one.wait(has(1))
        await two.wait(has(1))
        await call(both[1], PAUSE)
        await node.publish(4)
        await one.wait(has(2))
        node.now += 8  # 1 is 61 seconds old now, 2 is 10
        await call(reference, RESUME)
        await away.wait(has(2))
        assert numbers(away) == [2, 4]
        await node.waits(reference, 0)
        status, shown = await ask("GET", f"{node.base}/subscriptions/{reference.rsplit('/', 1)[1]}")
        assert (status, shown["dropped"], shown["delivered"], shown["waiting"]) == (200, 2, 2, 0)
        assert node.node.parts.delivery.totals.dropped == 2


async def test_the_bounds_themselves_are_not_exceeded(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away, Consumer() as other:
        reference = await node.subscribed(away.url, f'{CET} alpha="1" beta="PT1M"')
        await call(reference, PAUSE)
        await node.subscribed(other.url, "")
        await node.publish(1)
        await other.wait(has(1))
        node.now += 60
        await call(reference, RESUME)
        await away.wait(has(1))
        assert node.held(reference).progress.dropped == 0


async def test_a_paused_queue_is_dropped_by_its_rules_without_a_send(tmp_path: Path) -> None:
    async with cet_node(tmp_path, window=4) as node, Consumer() as away:
        reference = await node.subscribed(away.url, f'{CET} beta="PT1M"')
        await call(reference, PAUSE)
        await node.publish(*range(10))
        node.now += 61
        await node.publish(10)
        tidy = Housekeeping(node.node.parts.broker, RetentionPolicy(3600.0, 1 << 30, 60.0, 3600.0, 100))
        await tidy.tidy()
        await node.waits(reference, 1)
        assert node.held(reference).progress.dropped == 10
        await call(reference, RESUME)
        await away.wait(has(1))
        assert numbers(away) == [10]


async def test_only_what_fits_into_the_window_is_ranked_and_the_younger_rest_follows(
    tmp_path: Path,
) -> None:
    async with cet_node(tmp_path, window=4) as node, Consumer() as away:
        reference = await node.subscribed(away.url, CET)
        await call(reference, PAUSE)
        await node.publish(*range(1, 11))
        await call(reference, RESUME)
        await away.wait(has(10))
        assert numbers(away) == [4, 3, 2, 1, 8, 7, 6, 5, 10, 9]
        await node.waits(reference, 0)
        assert node.held(reference).cursor.acknowledged == node.node.parts.journal.last_offset


async def test_a_consumer_that_fails_gets_each_once_it_is_back_and_the_queue_goes_by_rank(
    tmp_path: Path,
) -> None:
    answers = {"status": 503}
    async with cet_node(tmp_path) as node, Consumer(lambda number: answers["status"]) as away:
        reference = await node.subscribed(away.url, CET)
        await node.publish(1)
        await away.wait(has(1))
        await node.publish(2, 3)
        await node.waits(reference, 3)
        answers["status"] = 202
        away.requests.clear()
        status, woken = await ask("POST", f"{node.base}/presence", {"consumer": away.url})
        assert (status, woken) == (200, {"subscriptions": 1, "waiting": 3})
        await away.wait(has(3))
        assert numbers(away) == [3, 2, 1]


async def test_a_restart_sends_nothing_again_that_was_delivered_ahead_and_counts_anew(
    tmp_path: Path,
) -> None:
    answers: dict[int, int] = {}
    async with Consumer(lambda number: answers.get(number, 202)) as away, Consumer() as other:
        async with cet_node(tmp_path) as node:
            reference = await node.subscribed(away.url, CET)
            await call(reference, PAUSE)
            await node.publish(1, 2, 3, 4, 5)
            await node.subscribed(other.url, "")
            await node.publish(6)
            await other.wait(has(1))
            answers[4] = 503  # after 5, 4 and 3
            await call(reference, RESUME)
            await away.wait(has(4))
            await node.waits(reference, 3)
            assert sorted(node.held(reference).cursor.ahead) == [3, 4, 5]  # type: ignore[attr-defined]
        away.requests.clear()
        async with cet_node(tmp_path) as node:
            await away.wait(has(3))
            assert numbers(away) == [2, 1, 6]
            await node.waits(reference, 0)


async def test_a_killed_node_loses_nothing_and_repeats_nothing_that_was_delivered_ahead(
    tmp_path: Path,
) -> None:
    answers: dict[int, int] = {}
    async with Consumer(lambda number: answers.get(number, 202)) as away:
        with NodeProcess(
            tmp_path, "--set", "delivery.retry_first=900", "--set", "delivery.retry_max=900"
        ) as node:
            url = await create(node, away, topic="A", delivery={"discipline": "cet", "batch": 1})
            await ask("PATCH", url, {"paused": True})
            for number in range(1, 7):
                await publish(node, "A", {"n": number})
            answers[4] = 503
            await ask("PATCH", url, {"paused": False})
            await away.wait(lambda consumer: len(consumer.requests) == 4)

            async def stored() -> bool:
                return (await show(url))["waiting"] == 3 and _ahead(tmp_path) == 3

            await eventually(stored)
            node.kill()
            assert [event["data"]["n"] for event in events_of(away)] == [6, 5, 4, 3]
            away.requests.clear()
            answers.clear()
            node.start()
            await away.wait(lambda consumer: len(events_of(consumer)) >= 3)
            assert [event["data"]["n"] for event in events_of(away)] == [3, 2, 1]

            async def passed() -> bool:
                return _ahead(tmp_path) == 0

            await eventually(passed)


def _ahead(data: Path) -> int:
    """How many rows of offsets beyond cursors the journal has."""
    with sqlite3.connect(f"file:{data / 'journal.db'}?mode=ro", uri=True) as db:
        return int(db.execute("SELECT count(*) FROM delivered_ahead").fetchone()[0])


async def test_a_pull_point_is_filled_by_rank_after_a_pause(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node:
        reply = await call(node.url, "<w:CreatePullPoint/>")
        point = reply.text("w:PullPoint/a:Address")
        reference = await node.subscribed(point, 'discipline="cet"')
        await call(reference, PAUSE)
        await node.publish(1, 2, 3)
        await call(reference, RESUME)
        await node.waits(reference, 0)
        assert await pulled(point) == [3, 2, 1]
        await node.publish(4)
        assert await pulled(point) == [4]


async def test_a_pull_point_does_not_hand_out_what_is_older_than_beta(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node:
        point = (await call(node.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
        reference = await node.subscribed(point, 'discipline="cet" beta="PT1M"')
        await node.publish(1)
        node.now += 61
        await node.publish(2)
        await node.waits(reference, 0)
        assert await pulled(point) == [2]


async def pulled(point: str) -> list[int]:
    """The numbers of the notifications that a pull point hands out."""
    reply = await call(point, "<w:GetMessages/>")
    found = reply.content.iterfind(".//w:Message", {"w": "http://docs.oasis-open.org/wsn/b-2"})
    return [int("".join(message[0].itertext())) for message in found]


@pytest.mark.parametrize(
    ("overflow", "dropped", "buried"), [("drop-oldest", 3, 0), ("dead-letter", 0, 3)], ids=str
)
async def test_a_queue_that_is_too_long_loses_the_oldest_whatever_their_rank(
    tmp_path: Path, overflow: str, dropped: int, buried: int
) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away:
        reference = await node.subscribed(away.url, f'{CET} maxQueue="3" overflow="{overflow}"')
        await call(reference, PAUSE)
        await node.publish(*range(1, 7))
        await node.waits(reference, 3)
        await call(reference, RESUME)
        await away.wait(has(3))
        assert numbers(away) == [6, 5, 4]
        totals = node.node.parts.delivery.totals
        assert (totals.dropped, totals.buried) == (dropped, buried)
        await node.waits(reference, 0)


async def test_what_expires_leaves_a_ranked_queue_wherever_it_waits(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away:
        reference = await node.subscribed(away.url, f'{CET} expires="PT30S"')
        await call(reference, PAUSE)
        await node.publish(1, 2)
        node.now += 30
        await node.publish(3, 4)
        await call(reference, RESUME)
        await away.wait(has(2))
        assert numbers(away) == [4, 3]
        await node.waits(reference, 0)
        assert node.held(reference).progress.expired == 2


async def test_dead_letters_of_a_ranked_queue_are_replayed(tmp_path: Path) -> None:
    answers = {"status": 503}
    async with cet_node(tmp_path, retry_for=0.0) as node, Consumer(lambda n: answers["status"]) as away:
        reference = await node.subscribed(away.url, CET)
        await node.publish(1, 2)

        async def buried() -> bool:
            return node.node.parts.delivery.totals.buried == 2

        await eventually(buried)
        await node.waits(reference, 0)
        answers["status"] = 202
        away.requests.clear()
        status, told = await ask("POST", f"{node.base}/deadletters/replay?wait=5", {"all": True})
        assert (status, told["delivered"]) == (200, 2), told
        assert sorted(numbers(away)) == [1, 2]


async def test_what_is_dropped_is_reported_and_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away:
        told: list[DeliveryOutcome] = []
        node.node.parts.delivery.reports.listeners.add(told.append)
        reference = await node.subscribed(away.url, f'{CET} beta="PT1M"')
        await call(reference, PAUSE)
        await node.publish(*range(12))
        node.now += 61
        await call(reference, RESUME)
        await node.waits(reference, 0)
        (outcome,) = told
        assert (outcome.result, outcome.reason) == (Result.DROPPED, "older than PT1M")
        assert len(outcome.offsets) == 12
        named = ", ".join(map(str, outcome.offsets[:10]))
        assert f"12 notifications are dropped, older than PT1M: offsets {named}, …" in caplog.text


async def test_a_restart_counts_who_has_a_notification_by_topic_and_content(tmp_path: Path) -> None:
    async with Consumer() as away, Consumer() as one, Consumer() as two:
        async with cet_node(tmp_path) as node:
            reference = await node.subscribed(away.url, CET)
            await call(reference, PAUSE)
            dialect = "http://www.w3.org/TR/1999/REC-xpath-19991116"
            content = f'<w:MessageContent Dialect="{dialect}">. > 1</w:MessageContent>'
            request = subscribe(one.url, "A").replace("</w:Filter>", f"{content}</w:Filter>")
            assert (await call(node.url, request)).status == 200
            await node.subscribed(two.url, "", topic="B")
            await node.publish(1, 2, 3)
            await node.publish(4, topic="B")
            await one.wait(has(2))
            await two.wait(has(1))
        async with cet_node(tmp_path) as node:
            await node.waits(reference, 3)
            await call(node.held(reference).address, RESUME)
            await away.wait(has(3))
            assert numbers(away) == [1, 3, 2]


async def test_the_counts_of_a_subscription_that_ends_are_forgotten(tmp_path: Path) -> None:
    async with cet_node(tmp_path) as node, Consumer() as away:
        reference = await node.subscribed(away.url, CET)
        await call(reference, PAUSE)
        await node.publish(1, 2)
        counts = node.node.parts.transmissions
        await node.waits(reference, 2)
        assert len(counts.watched) == 2
        await call(reference, "<w:Unsubscribe/>")
        assert not counts.watched

"""Dead letters: made when retries are used up, shown with their reason, sent again, dropped."""

import asyncio
import json
import subprocess
from pathlib import Path

from tests.consumer import Consumer
from tests.harness import NodeProcess, hpwsn
from tests.patience import eventually
from tests.raw_soap import call, notify, send, subscribe

ADDRESS = "w:SubscriptionReference/a:Address"
QUICK = ("--set", "delivery.retry_first=0.01", "--set", "delivery.retry_max=0.02")


def _hpwsn(node: NodeProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    return hpwsn(*arguments, "--url", node.url)


async def _letters(node: NodeProcess) -> list[dict[str, object]]:
    reply = await send(f"{node.base}/deadletters?limit=1000", b"", method="GET")
    found: list[dict[str, object]] = json.loads(reply.body)["items"]
    return found


def outcomes(**figures: int) -> dict[str, int]:
    """The answer to a replay with these figures."""
    return {**dict.fromkeys(("sent", "ended", "internal", "delivered", "failed", "pending"), 0), **figures}


async def test_after_the_last_attempt_a_notification_is_a_dead_letter_and_can_be_sent_again(
    tmp_path: Path,
) -> None:
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "retry.server_error_attempts=3") as node:
        async with Consumer(lambda number: 500 if number <= 6 else 202) as consumer:
            reply = await call(node.url, subscribe(consumer.url, "A"))
            await call(node.url, notify("A", "<n>1</n>", "<n>2</n>"))

            async def two() -> bool:
                return len(await _letters(node)) == 2

            await eventually(two)
            assert len(consumer.requests) == 6
            await call(node.url, notify("A", "<n>3</n>"))
            await consumer.wait(lambda c: len(c.requests) >= 7)
            node.kill()
            node.start()
            listed = _hpwsn(node, "deadletters", "list", "--json")
            first, second = json.loads(listed.stdout)["items"]
            assert (first["topic"], first["consumer"]) == ("A", consumer.url)
            assert "500" in first["reason"]
            assert first["subscription"] == reply.text(ADDRESS).rsplit("/", 1)[1]
            shown = _hpwsn(node, "deadletters", "show", str(second["id"]))
            assert "<n>2</n>" in shown.stdout
            ids = (str(first["id"]), str(second["id"]))
            replayed = await asyncio.to_thread(_hpwsn, node, "deadletters", "replay", *ids, "--json")
            assert json.loads(replayed.stdout) == outcomes(sent=2, delivered=2)
            await consumer.wait(lambda c: set(c.payloads()[-2:]) == {"1", "2"})

            async def none() -> bool:
                return not await _letters(node)

            await eventually(none)
            assert "no dead letters" in _hpwsn(node, "deadletters", "list").stdout


async def test_a_dead_letter_that_fails_again_stays_and_can_be_dropped(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "delivery.retry_for=0") as node:
        async with Consumer(lambda number: 404) as consumer:
            reference = (await call(node.url, subscribe(consumer.url, "A"))).text(ADDRESS)
            await call(node.url, notify("A", "<n>1</n>"))

            async def one() -> bool:
                return len(await _letters(node)) == 1

            await eventually(one)
            again = await asyncio.to_thread(_hpwsn, node, "deadletters", "replay", "--all")
            assert again.stdout == "replayed 1: 0 delivered, 1 failed again (still dead letters)\n"
            await consumer.wait(lambda c: len(c.requests) >= 2)
            assert await one()
            await call(reference, "<w:Unsubscribe/>")
            gone = _hpwsn(node, "deadletters", "replay", "--all", "--json")
            assert json.loads(gone.stdout) == outcomes(ended=1)
            told = _hpwsn(node, "deadletters", "replay", "--all").stdout
            assert told == "replayed 0; 1 not sent: the subscription has ended\n"
            dropped = _hpwsn(node, "deadletters", "drop", "--all")
            assert (dropped.returncode, await _letters(node)) == (0, [])


async def test_bad_selections_are_refused(node: NodeProcess) -> None:
    for body in (
        b"",
        b"[]",
        b"{}",
        b'{"ids": []}',
        b'{"ids": ["1"]}',
        b'{"all": false}',
        b'{"all": true, "x": 1}',
    ):
        reply = await send(f"{node.base}/deadletters/drop", body, "application/json")
        assert (reply.status, "error" in json.loads(reply.body)) == (400, True), body
    for query in ("after=x", "limit=0", "limit=x", "subscripton=a"):
        reply = await send(f"{node.base}/deadletters?{query}", b"", method="GET")
        assert (reply.status, list(json.loads(reply.body))) == (400, ["error"]), query
    for wait in ("61", "-1", "nan", "x"):
        reply = await send(
            f"{node.base}/deadletters/replay?wait={wait}", b'{"all": true}', "application/json"
        )
        assert (reply.status, list(json.loads(reply.body))) == (400, ["error"]), wait
    large = await send(f"{node.base}/deadletters/drop", b" " * (17 << 20), "application/json")
    assert (large.status, list(json.loads(large.body))) == (413, ["error"])
    for unknown in ("7", "seven", "1" * 30):
        reply = await send(f"{node.base}/deadletters/{unknown}", b"", method="GET")
        assert (reply.status, list(json.loads(reply.body))) == (404, ["error"]), unknown
    assert _hpwsn(node, "deadletters", "show", "7").returncode == 1
    dropped = _hpwsn(node, "deadletters", "drop", "7")
    assert (dropped.returncode, dropped.stdout.split()) == (1, ["dropped", "0"])
    assert "there is no dead letter 7; " in dropped.stderr


async def test_a_consumer_that_is_gone_is_tried_again_where_subscriptions_are_kept(tmp_path: Path) -> None:
    answers = {1: 410, 2: 410}
    with NodeProcess(tmp_path / "data", *QUICK) as node:
        async with Consumer(lambda number: answers.get(number, 202)) as consumer:
            assert (await call(node.url, subscribe(consumer.url, "A"))).status == 200
            await call(node.url, notify("A", "<n>1</n>"))
            await consumer.wait(lambda c: c.payloads() == ["1", "1", "1"])


async def test_a_consumer_that_is_gone_ends_its_subscription_if_so_set(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *QUICK, "--set", "delivery.on_gone=end") as node:
        async with Consumer(lambda number: 410) as consumer:
            reference = (await call(node.url, subscribe(consumer.url, "A"))).text(ADDRESS)
            await call(node.url, notify("A", "<n>1</n>"))

            async def ended() -> bool:
                return (await send(f"{node.base}/status", b"", method="GET")).body.find(
                    b'"subscriptions": 0'
                ) > 0

            await eventually(ended)
            assert (await call(reference, "<w:Unsubscribe/>")).fault == "ResourceUnknownFault"
            assert "410" in node.log()

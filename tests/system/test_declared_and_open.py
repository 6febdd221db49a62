"""Nodes whose topics are declared, and which also accept other topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.internal_topics import PLATE, TREE, get, post, publish_both, shows
from tests.patience import eventually
from tests.raw_soap import FULL, call, notify, send, subscribe
from tests.slapd import Slapd

OPEN = ("--set", "topics.open=true")


async def names(node: NodeProcess) -> str:
    _, _, body = await get(node, "/topics/namespace")
    return body.decode()


async def test_a_new_node_has_no_topic_file_and_follows_one_that_appears(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        file = node.data / "topics.toml"
        assert not file.exists()
        await post(node, "anything", {"n": 1})
        file.write_text('[topics.A.B]\ndescription = "declared"\n')

        async def declared() -> bool:
            return 'name="B"' in await names(node)

        await eventually(declared)
        await post(node, "A:C", {"n": 1})
        file.unlink()

        async def warned() -> bool:
            reply = await send(f"{node.base}/status", b"", method="GET")
            return bool(json.loads(reply.body)["directory"]["warnings"])

        await eventually(warned)
        assert await declared()


async def test_a_damaged_topic_file_in_the_data_directory_stops_the_start(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data")
    node.data.mkdir()
    (node.data / "topics.toml").write_text("[topics")
    with pytest.raises(AssertionError):
        node.start()
    node.close()
    assert "topics.toml: not valid TOML" in node.log()


async def test_a_topic_file_with_open_topics_accepts_others_and_says_that_it_is_not_fixed(
    tmp_path: Path,
) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("[topics.A.B]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(file), *OPEN) as node:
        assert (await call(node.url, notify("A:C", "<n>x</n>"))).status == 202
        asked = (
            '<r:GetResourceProperty xmlns:r="http://docs.oasis-open.org/wsrf/rp-2">'
            "w:FixedTopicSet</r:GetResourceProperty>"
        )
        assert (await call(node.url, asked)).text(".//w:FixedTopicSet") == "false"
        found = await names(node)
        assert 'name="B"' in found
        assert 'name="C"' in found


async def test_removed_topics_never_end_subscriptions_of_open_topics(tmp_path: Path) -> None:
    """One of a wildcard that matches nothing yet must stay too."""
    file = tmp_path / "topics.toml"
    file.write_text("[topics.A.B]\n")
    settings = ("--topics", str(file), *OPEN, "--set", "topics.on_remove=end")
    async with Consumer() as consumer:
        with NodeProcess(tmp_path / "data", *settings) as node:
            for topic, dialect in (("A:B", None), ("later/*", FULL)):
                asked = subscribe(consumer.url, topic, **({"dialect": dialect} if dialect else {}))
                assert (await call(node.url, asked)).status == 200
            file.write_text("[topics.Z]\n")

            async def changed() -> bool:
                return 'name="Z"' in await names(node)

            await eventually(changed)
            await post(node, "A:B", {"n": 1})
            await post(node, "later:one", {"n": 2})
            await eventually(lambda: _has(consumer, 2))


async def _has(consumer: Consumer, number: int) -> bool:
    return len(consumer.requests) >= number


# Internal topics


async def test_a_topic_that_appears_below_an_internal_one_is_internal_also_after_a_restart(
    tmp_path: Path,
) -> None:
    node = NodeProcess(tmp_path / "data")
    node.data.mkdir()
    (node.data / "topics.toml").write_text(TREE)
    new = "/topics/traffic:anpr:lane9:camera/events"
    with node:
        await post(node, "traffic:anpr:lane9:camera", {"vid": PLATE})
        await publish_both(node)
        for _ in range(2):
            for path in (new, "/topics/traffic:anpr:lane9/events", "/topics/traffic:anpr:never/events"):
                assert (await get(node, path))[0] == 401
            _, _, public = await get(node, "/topics/traffic/events")
            assert PLATE.encode() not in public
            # A job that reads the topic above gets its events, although it was never declared.
            for path in (new, "/topics/traffic:anpr/events", "/topics/traffic/events"):
                _, _, body = await get(node, path, headers=shows(node))
                assert "traffic:anpr:lane9:camera" in [each["topic"] for each in json.loads(body)]
            node.kill()
            node.start()


async def test_a_server_that_was_never_read_opens_no_topics(tmp_path: Path, slapd: Slapd) -> None:
    """A topic may be internal there, so nobody can use it before the node knows."""
    slapd.close()
    settings = ("--topics", slapd.url, *OPEN, "--set", "topics.start_wait=0", "--set", "topics.retry_max=0.2")
    with NodeProcess(tmp_path / "data", *settings) as node:
        assert (await call(node.url, notify("fresh", "<n>x</n>"))).status != 202
        assert (await send(f"{node.base}/readyz", b"", method="GET")).status == 503
        slapd.start()

        async def opened() -> bool:
            return (await call(node.url, notify("fresh", "<n>x</n>"))).status == 202

        await eventually(opened)
        assert 'name="ALARM"' in await names(node)
        node.terminate()
    slapd.close()
    saved = ("--topics", slapd.url, *OPEN, "--set", "topics.start_wait=0")
    with NodeProcess(node.data, *saved) as node:
        assert (await call(node.url, notify("other", "<n>x</n>"))).status == 202
        found = await names(node)
        assert 'name="ALARM"' in found
        assert 'name="fresh"' in found

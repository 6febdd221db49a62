"""A running node follows its topic file: edits by the command, by hand, with mistakes, and SIGHUP."""

import asyncio
import json
import signal
from pathlib import Path

from tests.harness import NodeProcess, hpwsn
from tests.patience import eventually
from tests.raw_soap import call, notify, send


async def publishes(node: NodeProcess, on: str) -> bool:
    return (await call(node.url, notify(on, "<n>x</n>"))).status == 202


async def test_the_command_edits_the_topics_of_a_running_node(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("[topics.A]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        ended = await asyncio.to_thread(hpwsn, "topics", "add", "A:B", "--topics", str(file))
        assert ended.returncode == 0
        await eventually(lambda: publishes(node, "A:B"))


async def test_a_mistake_in_the_file_is_reported_and_the_topics_stay(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("[topics.A]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        for broken in (lambda: file.write_text("[topics"), file.unlink):
            broken()

            async def warned() -> bool:
                reply = await send(f"{node.base}/status", b"", method="GET")
                return bool(json.loads(reply.body)["directory"]["warnings"])

            await eventually(warned)
            assert await publishes(node, "A")
            assert (await send(f"{node.base}/readyz", b"", method="GET")).status == 200
            file.write_text("[topics.A]\n[topics.B]\n")

            async def well() -> bool:
                return not await warned()

            await eventually(well)
        assert await publishes(node, "B")
    assert "not valid TOML" in node.log()


async def test_a_hangup_reads_the_directory_again(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text("[topics.A]\n")
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        assert node.process is not None
        node.process.send_signal(signal.SIGHUP)

        async def said() -> bool:
            return "reloading the topic directory" in node.log()

        await eventually(said)
        assert await publishes(node, "A")

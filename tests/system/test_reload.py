"""SIGHUP: what a node and an admin node read again, and that it never ends them."""

import json
import signal
from pathlib import Path

import pytest

from tests.cluster import AdminProcess
from tests.harness import NodeProcess
from tests.patience import eventually
from tests.raw_soap import send


async def says(node: NodeProcess, words: str, times: int = 1) -> None:
    """Wait until the log has the words so often."""

    async def said() -> bool:
        return node.log().count(words) >= times

    await eventually(said)


def hang_up(node: NodeProcess) -> None:
    assert node.process is not None
    node.process.send_signal(signal.SIGHUP)


@pytest.mark.parametrize("kind", [NodeProcess, AdminProcess])
async def test_the_log_changes_and_the_rest_is_named(kind: type[NodeProcess], tmp_path: Path) -> None:
    file = tmp_path / "hpwsn.toml"
    file.write_text('[log]\nlevel = "info"\n[journal]\nid_window = "10 min"\n')
    with kind(tmp_path / "data", "--config", str(file)) as node:
        file.write_text('[log]\nlevel = "debug"\nformat = "json"\n[journal]\nid_window = "20 min"\n')
        hang_up(node)
        await says(node, "need a restart: journal.id_window")
        changed = next(line for line in node.log().splitlines() if "has level debug" in line)
        assert json.loads(changed)["message"] == "the log has level debug and format json now"
        file.write_text('[log]\nlevel = "loud"\n')
        hang_up(node)
        await says(node, "the settings were not reloaded")
        file.write_text('[log]\nlevel = "warning"\n[journal]\nid_window = "10 min"\n')
        hang_up(node)
        hang_up(node)
        path = "/healthz" if kind is NodeProcess else "/api/topology"
        url = node.url.removesuffix("wsn").rstrip("/") + path
        for _ in range(5):
            assert (await send(url, b"", method="GET")).status == 200
        assert node.log().count("need a restart") == 1
        assert node.terminate() == 0


async def test_a_hangup_while_a_node_starts_does_not_end_it(tmp_path: Path) -> None:
    node = NodeProcess(tmp_path / "data", fresh=True).launch()
    try:

        async def opened() -> bool:
            return (node.data / "journal.db").exists()

        await eventually(opened)
        hang_up(node)
        node.wait_ready()
        assert (await send(f"{node.base}/healthz", b"", method="GET")).status == 200
        assert node.terminate() == 0
    finally:
        node.close()

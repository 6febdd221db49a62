"""Stream services between an MQTT application and readers of Parquet files, none of which are ours."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyarrow import parquet

from tests.activemq import ActiveMQ, sharing
from tests.harness import hpwsn
from tests.mqtt_application import mqtt_application
from tests.patience import until
from tests.spark import cheap_environment
from tests.stream_jobs import JobProcess

START = datetime(2024, 3, 4, 6, 0, tzinfo=UTC)
FLOW = """
uri = "urn:test:flow"
topic = "flow"

[inputs.levels]
source = "topic"
topic = "{root}"
schema = "sensor STRING, level DOUBLE, time TIMESTAMP"

[[ops]]
op = "count"
by = "sensor"
window = "60 s"
output = "readings"
"""
PEAK = """
uri = "urn:test:peak"
topic = "peak"

[inputs.flow]
source = "topic"
topic = "flow"
schema = "sensor STRING, readings BIGINT, time TIMESTAMP"

[[ops]]
op = "max"
attribute = "readings"
by = "sensor"
window = "3600 s"
emit = "row"
output = "peak"
"""


def readings() -> list[dict[str, Any]]:
    """Two sensors for three minutes, and a reading of an hour later, which ends their windows."""
    minutes = [(sensor, minute) for minute in range(3) for sensor in ("a", "b") for _ in range(5 + minute)]
    found = [
        (sensor, timedelta(minutes=minute, seconds=n % 60)) for n, (sensor, minute) in enumerate(minutes)
    ]
    found.append(("a", timedelta(hours=1)))
    return [{"sensor": sensor, "level": 0.5, "time": START + after} for sensor, after in found]


def element(reading: dict[str, Any]) -> str:
    """A reading as a device writes it."""
    time = f"{reading['time']:%Y-%m-%dT%H:%M:%SZ}"
    return (
        f"<reading><sensor>{reading['sensor']}</sensor><level>{reading['level']}</level>"
        f"<time>{time}</time></reading>"
    )


def test_messages_of_mqtt_devices_are_counted_kept_as_parquet_and_queried_again(
    activemq: ActiveMQ, tmp_path: Path
) -> None:
    root, given = f"R{uuid.uuid4().hex[:8]}", readings()
    (tmp_path / "flow.toml").write_text(FLOW.format(root=root))
    (tmp_path / "peak.toml").write_text(PEAK)
    spark = cheap_environment(tmp_path / "conf")
    history = tmp_path / "history"
    with sharing(activemq, tmp_path / "data", root) as node:
        with mqtt_application(activemq) as (device, _):
            for one in given:
                device.publish(f"hpwsn/{root}/{one['sensor']}", element(one), qos=1)
            until(lambda: len(node.events(root)) == len(given), node.log)
        arguments = ("flow.toml", "--once", "--history", str(history), "--master", "local[1]")
        with JobProcess(tmp_path, spark, node, *arguments) as job:
            assert job.wait() == 0, job.log.read_text()
        flows = node.events("flow")
    wanted = [(sensor, 5 + minute, minute) for sensor in ("a", "b") for minute in range(3)]
    assert sorted((one["sensor"], one["readings"]) for one in flows) == [one[:2] for one in wanted]
    kept = parquet.read_table(history / "flow").to_pylist()
    found = sorted((one["sensor"], one["readings"], one["time"]) for one in kept)
    assert found == [(name, count, START + timedelta(minutes=minute)) for name, count, minute in wanted]
    said = hpwsn(
        *("streams", "history", str(tmp_path / "peak.toml"), "--history", str(history), "--json"),
        *("--master", "local[1]"),
        **spark,
    )
    assert said.returncode == 0, said.stderr
    peaks = [json.loads(line) for line in said.stdout.splitlines()]
    assert {(one["sensor"], one["peak"]) for one in peaks} == {("a", 7), ("b", 7)}

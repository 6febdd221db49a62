"""Nodes without links, and the carriers that take bundles between them with the command of a user."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.harness import hpwsn
from tests.patience import until
from tests.sensor_node import SensorNode

KEY = "the key of the islands"


class Island(SensorNode):
    """A node with carriers; keyword arguments are settings of the section dtn."""

    def __init__(self, folder: Path, name: str, key: str = KEY, **settings: object) -> None:
        self.name = name
        key_file = folder / f"{name}.key"
        key_file.write_text(key + "\n")
        given = [f"--set=dtn.{setting}={value}" for setting, value in settings.items()]
        super().__init__(folder / name, "--name", name, f"--set=dtn.key_file={key_file}", *given)

    def publish(self, topic: str, *values: Any) -> None:
        """Publish an event for each value."""
        found = self.ask("POST", f"/topics/{topic}/events", [{"value": value} for value in values])
        assert found.status == 202, found

    def values(self, topic: str) -> list[Any]:
        """The values of all events on a topic, in the order of the log."""
        return [event["value"] for event in self.events(topic)]

    @property
    def carried(self) -> dict[str, int]:
        """The part of /status that is about carriers."""
        found: dict[str, int] = self.get("/status")["dtn"]
        return found

    def comes_to(self, **figures: int) -> None:
        """Wait until figures of carriers have these values."""
        until(lambda: figures.items() <= self.carried.items(), lambda: str(self.carried))


def collect(node: Island, file: Path, to: str, *options: str) -> dict[str, int]:
    """`hpwsn dtn collect`."""
    done = hpwsn("dtn", "collect", "--url", node.url, "--out", str(file), "--to", to, "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


def deliver(node: Island, file: Path) -> dict[str, int]:
    """`hpwsn dtn deliver`."""
    done = hpwsn("dtn", "deliver", "--url", node.url, str(file), "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


def refused(node: Island, file: Path) -> str:
    """The error of `hpwsn dtn deliver`, which must be one of the node."""
    done = hpwsn("dtn", "deliver", "--url", node.url, str(file), "--json")
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def outcome(published: int = 0, repeated: int = 0, held: int = 0) -> dict[str, int]:
    """What a delivery answers."""
    return {"published": published, "repeated": repeated, "held": held}

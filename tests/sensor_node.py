"""A real node with physical sensors, and what a test asks it over HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tests.harness import NodeProcess
from tests.patience import PATIENCE

JSON = "application/json"


class Answer(NamedTuple):
    """A status and the JSON of an answer; None without a body."""

    status: int
    body: Any


class SensorNode(NodeProcess):
    """A node; keyword arguments of `sensors` are settings of the section."""

    def __init__(self, data: Path, *arguments: str, sensors: dict[str, object] | None = None) -> None:
        """The settings of `sensors` are those of the section sensors."""
        given = [f"--set=sensors.{name}={value}" for name, value in (sensors or {}).items()]
        super().__init__(data, *given, *arguments)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str | None = JSON,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """A request with any status; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, headers or {}, method=method)
        if data is not None and content_type is not None:
            request.add_header("Content-Type", content_type)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return Answer(answer.status, _json(answer.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _json(error.read()))

    def get(self, path: str, **query: object) -> Any:
        """The JSON at a path, which must be there."""
        found = self.ask("GET", path + (f"?{urlencode(query)}" if query else ""))
        assert found.status == 200, found
        return found.body

    def register(self, *sensors: dict[str, Any]) -> None:
        """Register sensors."""
        found = self.ask("POST", "/sensors", list(sensors))
        assert found.status == 201, found

    def post(self, *readings: Any, sensor: str | None = None) -> Answer:
        """Post readings in an array."""
        path = "/readings" if sensor is None else f"/sensors/{quote(sensor)}/readings"
        return self.ask("POST", path, list(readings))

    def events(self, topic: str) -> list[Any]:
        """The data of all events on a topic so far, in the order of the log."""
        found: list[Any] = []
        after = 0
        while page := self.get(f"/topics/{topic}/events", after=after, max=1000):
            found += [event["data"] for event in page]
            after = page[-1]["offset"]
        return found

    def rejected(self, **query: object) -> list[dict[str, Any]]:
        """The rejected readings that are kept, the newest first."""
        found: list[dict[str, Any]] = []
        more: dict[str, object] = {}
        while True:
            page = self.get("/readings/rejected", **query, **more)
            found += page["items"]
            if page["next"] is None:
                return found
            more = {"after": page["next"]}

    @property
    def figures(self) -> dict[str, Any]:
        """The part of /status that is about sensors."""
        found: dict[str, Any] = self.get("/status")["sensors"]
        return found


def sensor(name: str, kind: str = "weather", **more: Any) -> dict[str, Any]:
    """A sensor of the temperature t, from -40 to 60 degC."""
    quantities = {"t": {"unit": "degC", "min": -40, "max": 60}}
    return {"id": name, "kind": kind, "quantities": quantities, **more}


def ago(seconds: float = 0.0) -> str:
    """A time in RFC 3339, with milliseconds."""
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def series(name: str, count: int, start: float = 1000.0) -> Sequence[dict[str, Any]]:
    """Readings of a sensor, a second apart, with t from 0 to 49 again and again."""
    begin = datetime.now(UTC) - timedelta(seconds=start)
    return [
        {
            "sensor": name,
            "time": (begin + timedelta(seconds=at)).isoformat(timespec="milliseconds"),
            "t": at % 50,
        }
        for at in range(count)
    ]


def _json(body: bytes) -> Any:
    return json.loads(body) if body else None

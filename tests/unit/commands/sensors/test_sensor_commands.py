"""`hpwsn sensors` against answers of a node that are written here: what is sent, printed and refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from hpwsn.commands.main import main
from hpwsn.commands.operations import operator_api
from hpwsn.commands.operations.operator_api import NodeRequestFailed
from hpwsn.commands.sensors import kept_readings, reading_post
from hpwsn.commands.sensors.sensor_options import instant
from hpwsn.commands.sensors.virtual_actions import COMBINATIONS, SILENCES, duration
from hpwsn.sensors.readings import checks
from hpwsn.sensors.readings.checks import Newcomer, ReadingChecks
from hpwsn.sensors.readings.reading_times import parse_time
from hpwsn.sensors.simulation.simulated_network import KINDS
from hpwsn.sensors.templates import combining, template

ROOF = {
    "id": "roof-1",
    "kind": "weather",
    "quantities": {"t": {"unit": "degC", "min": -40.0, "max": 60.0}},
    "tags": [],
}
IN_TOML = 'kind = "weather"\nquantities.t = {unit = "degC", min = -40, max = 60}'
STATE = {"last_seen": "2026-01-31T12:00:00.000Z", "interval": 1.5, "silent": False}
KNOWN = {**ROOF, "place": {"longitude": 116.4, "latitude": 39.9}, "state": STATE, "wanted": None}
WARMTH = {"name": "warmth", "state": "idle", "kind": "weather", "quantity": "t", "every": 10}
Answer = Callable[[str, str, bytes | None], Any]


class Node:
    """Answers requests by path, and remembers them."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.types: list[str] = []
        self.urls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, Any] = {}

    def exchange(
        self, method: str, url: str, data: bytes | None, headers: dict[str, str], accept: str, *rest: Any
    ) -> bytes:
        self.urls.append(url)
        self.headers.append(headers)
        parts = urlsplit(url)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.requests.append((method, unquote(parts.path), query, data))
        self.types.append(headers.get("Content-Type", accept))
        answer = self.answers.get(f"{method} {unquote(parts.path)}", {})
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(data) for *_, data in self.requests if data]

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The readings of all requests in JSON lines."""
        return [json.loads(line) for *_, data in self.requests if data for line in data.splitlines()]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:
    found = Node()
    monkeypatch.setattr(operator_api, "_exchange", found.exchange)
    monkeypatch.delenv("HPWSN_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return found


def page(*items: Any) -> dict[str, Any]:
    return {"items": list(items), "next": None, "total": len(items)}


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The error of a command that is used wrongly; its status is 2."""
    try:
        status = main(["sensors", *arguments])
    except SystemExit as error:
        status = int(str(error.code))
    said = capsys.readouterr().err
    assert status == 2, said
    return said


class TestRegister:
    def test_takes_one_sensor_by_options(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--sensor", "roof-1", "--kind", "weather", "--quantity", "t=degC:-40:60"]
        assert main(["sensors", "register", *options]) == 0
        assert node.requests[0][:2] == ("POST", "/sensors")
        assert node.bodies == [[ROOF]]
        assert capsys.readouterr().out == "registered roof-1\n"

    def test_takes_every_other_field_too(self, node: Node) -> None:
        options = "--sensor a --kind k --quantity n=1 --quantity p=hPa:900: --place=-0.5,51 --tag x --tag y"
        more = "--interval 60 --owner us --gateway hut --on-demand --url http://there:1/wsn --json"
        assert main(["sensors", "register", *options.split(), *more.split()]) == 0
        assert node.bodies == [
            [
                {
                    "id": "a",
                    "kind": "k",
                    "quantities": {"n": {"unit": "1"}, "p": {"unit": "hPa", "min": 900.0}},
                    "tags": ["x", "y"],
                    "place": {"longitude": -0.5, "latitude": 51.0},
                    "interval": 60.0,
                    "owner": "us",
                    "gateway": "hut",
                    "on_demand": True,
                }
            ]
        ]

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("one.json", json.dumps(ROOF)),
            ("many.json", json.dumps([ROOF])),
            ("table.toml", f"[sensors.roof-1]\n{IN_TOML}"),
            ("items.toml", f'[[sensors]]\nid = "roof-1"\n{IN_TOML}'),
        ],
    )  # fmt: skip
    def test_takes_a_file_in_each_form(self, name: str, text: str, node: Node, tmp_path: Path) -> None:
        (tmp_path / name).write_text(text)
        assert main(["sensors", "register", name]) == 0
        assert node.bodies == [[ROOF]]

    def test_sends_many_sensors_in_several_requests(
        self, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        many = [{**ROOF, "id": f"s{n}"} for n in range(2001)]
        (tmp_path / "many.json").write_text(json.dumps(many))
        assert main(["sensors", "register", "many.json"]) == 0
        assert [len(body) for body in node.bodies] == [1000, 1000, 1]
        assert capsys.readouterr().err.splitlines()[-1] == "registered 2001 of 2001 sensors"

    def test_sends_nothing_if_one_sensor_is_wrong(
        self, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "a.json").write_text(json.dumps([ROOF, {**ROOF, "kind": "a b"}]))
        assert main(["sensors", "register", "a.json"]) == 1
        assert "sensor 2 of a.json: kind is 'a b'" in capsys.readouterr().err
        assert not node.requests

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ([], "give a file of sensors, or one sensor by --sensor"),
            (["a.json", "--sensor", "a"], "give a file of sensors, or one sensor by --sensor"),
            (["missing.json"], "missing.json cannot be read: No such file or directory"),
            (["--sensor", "a"], "give --kind and --quantity"),
            (["--sensor", "a", "--kind", "k", "--quantity", "t"], "write NAME=UNIT or NAME=UNIT:MIN:MAX"),
            (["--sensor", "a", "--kind", "k", "--quantity", "t=K:1"], "write NAME=UNIT or NAME=UNIT:MIN:MAX"),
            (["--sensor", "a", "--kind", "k", "--quantity", "t=K:a:b"], "write NAME=UNIT or"),
            (["--sensor", "a", "--kind", "k", "--quantity", "t=K", "--place", "1"], "LONGITUDE,LATITUDE"),
            (["--sensor", "a", "--interval", "0"], "'0' is not a number of seconds"),
        ],
    )
    def test_names_what_is_wrong(
        self, arguments: list[str], why: str, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert why in refused(["register", *arguments], capsys)

    @pytest.mark.parametrize(
        ("name", "text", "why"),
        [
            ("a.json", "[", "a.json is not JSON"),
            ("a.toml", "a", "a.toml: it is not TOML"),
            ("a.toml", "[other]", "a.toml: the table 'other' is unknown"),
            ("a.json", "[]", "a.json has no sensors"),
            ("a.json", "7", "a sensor is a JSON object"),
        ],
    )
    def test_names_what_is_wrong_with_a_file(
        self, name: str, text: str, why: str, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / name).write_text(text)
        assert main(["sensors", "register", name]) == 1
        assert why in capsys.readouterr().err


class TestListShowRemove:
    def test_list_is_a_table(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        silent = {**KNOWN, "id": "roof-2", "state": {**STATE, "silent": True}}
        stopped = {**KNOWN, "id": "roof-4", "on_demand": True, "wanted": False}
        node.answers["GET /sensors"] = page(KNOWN, silent, {**ROOF, "id": "roof-3", "state": {}}, stopped)
        assert main(["sensors", "list", "--kind", "weather", "--tag", "roof", "--area=-10,39,117,40"]) == 0
        assert node.requests[0][2] == {
            "kind": "weather", "tag": "roof", "area": "-10,39,117,40", "limit": "500",
        }  # fmt: skip
        header, *rows = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
        assert header == ["ID", "KIND", "QUANTITIES", "PLACE", "TAGS", "LAST SEEN", "STATE"]
        assert rows[0] == [
            "roof-1",
            "weather",
            "t (degC)",
            "116.4, 39.9",
            "-",
            STATE["last_seen"],
            "reporting",
        ]
        assert [row[-1] for row in rows] == ["reporting", "silent", "not seen", "not wanted"]

    def test_list_can_be_of_one_sensor(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        node.answers["GET /sensors/roof-1"] = KNOWN
        assert main(["sensors", "list", "--sensor", "roof-1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == page(KNOWN)

    @pytest.mark.parametrize("arguments", [["roof-1"], ["--sensor", "roof-1"]])
    def test_show_has_all_fields(
        self, arguments: list[str], node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["GET /sensors/roof-1"] = {**KNOWN, "interval": 60.0}
        assert main(["sensors", "show", *arguments]) == 0
        shown = capsys.readouterr().out
        assert re.search(r"^interval +60 s$", shown, re.MULTILINE)
        assert re.search(r"^seen every +1.5 s$", shown, re.MULTILINE)
        assert "longitude=116.4 latitude=39.9" in shown
        assert re.search(r"^silent +no$", shown, re.MULTILINE)
        assert re.search(r"^t +degC +-40.0 +60.0$", shown, re.MULTILINE)

    @pytest.mark.parametrize("arguments", [[], ["a", "--sensor", "b"]])
    def test_show_is_of_one_sensor(
        self, arguments: list[str], node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert "give the id of one sensor" in refused(["show", *arguments], capsys)

    def test_an_area_that_is_none_is_named(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        assert "give west,south,east,north in degrees" in refused(["list", "--area", "1,2"], capsys)

    def test_remove_says_what_it_removed(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["sensors", "remove", "roof-1"]) == 0
        assert node.requests[0][:2] == ("DELETE", "/sensors/roof-1")
        assert capsys.readouterr().out == "removed roof-1\n"


class TestVirtual:
    @pytest.mark.parametrize("arguments", [[], ["list"]])
    def test_without_an_action_it_lists(
        self, arguments: list[str], node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["GET /virtual"] = page(WARMTH)
        assert main(["sensors", "virtual", *arguments]) == 0
        assert re.search(r"^warmth +idle +weather +- +- +t +- +10 s$", capsys.readouterr().out, re.MULTILINE)

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--url", "http://there:1/wsn", "--json"],
            ["--url", "http://there:1/wsn", "--json", "list"],
            ["list", "--url", "http://there:1/wsn", "--json"],
        ],
    )
    def test_options_are_taken_before_and_after_the_action(
        self, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        asked: list[str] = []

        def exchange(method: str, url: str, *rest: object) -> bytes:
            asked.append(url)
            return b'{"items": []}'

        monkeypatch.setattr(operator_api, "_exchange", exchange)
        assert main(["sensors", "virtual", *arguments]) == 0
        assert asked == ["http://there:1/virtual?limit=500"]
        assert json.loads(capsys.readouterr().out) == {"items": []}

    @pytest.mark.parametrize("words", [["--sensor", "warmth"], ["list", "--sensor", "warmth"]])
    def test_list_can_be_of_one(
        self, words: list[str], node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["GET /virtual/warmth"] = WARMTH
        assert main(["sensors", "virtual", *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == page(WARMTH)

    def test_define_takes_options(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        options = (
            "--kind weather --tag roof --area=-10,39,117,40 --quantity t --combine max --every 5m"
            " --lateness 500ms --quorum 3 --silence hold --outliers 4"
            " --band normal:-20:30 --band hot:30: --band cold::-20"
            " --hysteresis 1 --text {value}"
        )
        assert main(["sensors", "virtual", "define", "heat", *options.split()]) == 0
        assert node.requests[0][:2] == ("PUT", "/virtual/heat")
        (body,) = node.bodies
        assert body == {
            "kind": "weather",
            "tags": ["roof"],
            "area": [-10, 39, 117, 40],
            "quantity": "t",
            "combine": "max",
            "every": 300,
            "lateness": 0.5,
            "quorum": 3,
            "silence": "hold",
            "outliers": 4,
            "bands": [
                {"name": "normal", "low": -20, "high": 30},
                {"name": "hot", "low": 30},
                {"name": "cold", "high": -20},
            ],
            "hysteresis": 1,
            "text": "{value}",
        }
        assert template.parse_template("heat", body).every == 300_000
        assert capsys.readouterr().out == "defined heat; its topic is virtual:heat\n"

    def test_define_takes_a_file(self, node: Node, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_text(
            '[virtual.a]\nquantity = "t"\nevery = "10s"\n[virtual.b]\nquantity = "p"'
        )
        assert main(["sensors", "virtual", "define", "--file", "a.toml"]) == 0
        assert [path for _, path, *_ in node.requests] == ["/virtual/a", "/virtual/b"]
        assert node.bodies == [{"quantity": "t", "every": "10s"}, {"quantity": "p"}]

    def test_define_takes_the_definition_of_a_service(self, node: Node, tmp_path: Path) -> None:
        (tmp_path / "s.toml").write_text('uri = "urn:a"\n')
        options = ["--quantity", "t", "--every", "10", "--service", "s.toml"]
        assert main(["sensors", "virtual", "define", "a", *options]) == 0
        assert node.bodies == [{"quantity": "t", "every": 10, "service": 'uri = "urn:a"\n'}]

    def test_define_says_how_far_it_came(
        self, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "a.toml").write_text("[virtual.a]\n[virtual.b]\n[virtual.c]")
        node.answers["PUT /virtual/b"] = NodeRequestFailed("the node rejected it", 400)
        assert main(["sensors", "virtual", "define", "--file", "a.toml"]) == 1
        assert capsys.readouterr().err == (
            "hpwsn: error: b: the node rejected it (1 of 3 definitions are stored)\n"
        )

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ([], "give the name of one virtual sensor with options, or --file"),
            (["a", "--file", "b"], "give the name of one virtual sensor with options, or --file"),
            (["--file", "missing.toml"], "missing.toml cannot be read"),
            (["a", "--band", "hot"], "write NAME:LOW:HIGH"),
            (["a", "--band", "hot:a:b"], "write NAME:LOW:HIGH"),
            (["a", "--every", "soon"], "'soon' is not a time; write such as 10s, 5m or 1h"),
            (["a", "--combine", "mode"], "invalid choice: 'mode'"),
            (["a", "--quorum", "0"], "'0' is not a whole number above 0"),
        ],
    )
    def test_define_names_what_is_wrong(
        self, arguments: list[str], why: str, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert why in refused(["virtual", "define", *arguments], capsys)

    @pytest.mark.parametrize(
        ("text", "why"), [("a", "is not TOML"), ("[sensors.a]", "has no virtual sensors")]
    )
    def test_define_names_what_is_wrong_with_a_file(
        self, text: str, why: str, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "a.toml").write_text(text)
        assert main(["sensors", "virtual", "define", "--file", "a.toml"]) == 1
        assert why in capsys.readouterr().err

    def test_show_and_remove(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        node.answers["GET /virtual/warmth"] = WARMTH
        assert main(["sensors", "virtual", "show", "warmth"]) == 0
        assert main(["sensors", "virtual", "remove", "warmth", "--json"]) == 0
        shown = capsys.readouterr().out
        assert re.search(r"^state +idle$", shown, re.MULTILINE)
        assert shown.endswith('{\n  "removed": "warmth"\n}\n')

    def test_choices_are_those_of_templates(self) -> None:
        assert set(COMBINATIONS) == set(combining.COMBINATIONS)
        assert set(SILENCES) == set(template.SILENCES)

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("10s", 10), ("5m", 300), ("1h", 3600), ("1d", 86400), ("250ms", 0.25), ("7", 7)],
    )
    def test_a_time_has_a_unit_or_is_in_seconds(self, text: str, seconds: float) -> None:
        assert duration(text) == seconds


class TestKeptReadings:
    READINGS = (
        {"sensor": "a", "kind": "k", "time": "2026-01-31T12:00:00.000Z", "t": 1.5},
        {"sensor": "b", "kind": "k", "time": "2026-01-31T12:00:01.000Z", "states": ["hot", "dry"], "p": True},
    )

    def test_history_asks_for_all_pages_of_a_query(
        self, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        pages = iter([{**page(self.READINGS[0]), "next": "x"}, page(self.READINGS[1])])
        node.answers["GET /readings"] = lambda: next(pages)
        query = ["--kind", "k", "--area", "1,2,3,4", "--filter", "t > 1", "--to", "2026-02-01T01:00:00+01:00"]
        assert main(["sensors", "history", *query, "--from", "2026-01-31T00:00:00Z", "--json"]) == 0
        assert [asked for _, _, asked, _ in node.requests] == [
            {
                "kind": "k",
                "area": "1,2,3,4",
                "filter": "t > 1",
                "from": "2026-01-31T00:00:00Z",
                "to": "2026-02-01T00:00:00Z",
                "limit": "1000",
                **after,
            }
            for after in ({}, {"after": "x"})
        ]
        assert json.loads(capsys.readouterr().out)["items"] == list(self.READINGS)

    def test_history_is_a_table_or_csv(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        node.answers["GET /readings"] = page(*self.READINGS)
        assert main(["sensors", "history", "--sensor", "a"]) == 0
        assert main(["sensors", "history", "--virtual", "a", "--csv"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert re.split("  +", lines[0]) == ["SENSOR", "KIND", "TIME", "T", "STATES", "P"]
        assert lines[3:] == [
            "sensor,kind,time,t,states,p",
            "a,k,2026-01-31T12:00:00.000Z,1.5,,",
            "b,k,2026-01-31T12:00:01.000Z,,hot dry,true",
        ]

    def test_history_stops_at_its_limit(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        node.answers["GET /readings"] = {**page(self.READINGS[0]), "next": "x"}
        assert main(["sensors", "history", "--limit", "2", "--csv"]) == 0
        assert [asked["limit"] for _, _, asked, _ in node.requests] == ["2", "1"]

    @pytest.mark.parametrize(("name", "begins"), [("a.csv", "sensor,"), ("a.json", "{")])
    def test_history_is_written_in_the_form_of_the_file(
        self, name: str, begins: str, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["GET /readings"] = page(*self.READINGS)
        assert main(["sensors", "history", "--sensor", "a", "--out", name]) == 0
        assert (tmp_path / name).read_text().startswith(begins)
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", f"wrote 2 readings to {name}\n")

    def test_a_plot_is_what_the_node_draws(
        self, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["GET /readings"] = b"\x89PNG"
        assert main(["sensors", "plot", "--sensor", "a", "--quantity", "t"]) == 0
        assert main(["sensors", "history", "--virtual", "b", "--out", "b.svg", "--json"]) == 0
        assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.svg").read_bytes() == b"\x89PNG"
        assert [asked for _, _, asked, _ in node.requests] == [
            {"sensor": "a", "quantity": "t", "format": "png"},
            {"virtual": "b", "format": "svg"},
        ]
        assert node.types == ["image/png", "image/svg+xml"]
        assert capsys.readouterr().out == 'wrote a.png\n{\n  "plot": "b.svg",\n  "bytes": 4\n}\n'

    def test_several_sensors_can_be_in_one_plot(self, node: Node, tmp_path: Path) -> None:
        node.answers["GET /readings"] = b"<svg/>"
        options = ["--sensor", "a", "--sensor", "b b", "--out", "two.svg"]
        assert main(["sensors", "plot", *options]) == 0
        assert node.urls == ["http://127.0.0.1:8080/readings?sensor=a&sensor=b+b&format=svg"]

    @pytest.mark.parametrize("arguments", [["plot"], ["history", "--out", "readings.png"]])
    def test_all_readings_can_be_in_one_plot(self, arguments: list[str], node: Node, tmp_path: Path) -> None:
        node.answers["GET /readings"] = b"\x89PNG"
        assert main(["sensors", *arguments]) == 0
        assert node.urls == ["http://127.0.0.1:8080/readings?format=png"]
        assert (tmp_path / "readings.png").read_bytes() == b"\x89PNG"

    def test_a_file_that_cannot_be_written_is_one_line(
        self, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["sensors", "plot", "--sensor", "a", "--out", "missing/a.png"]) == 1
        assert "missing/a.png cannot be written: No such file or directory" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (["history", "--out", "a.txt"], "name a .csv, .json, .png or .svg file"),
            (["history", "--from", "2026-01-31"], "'2026-01-31' is not a time; write 2026-01-31T12:00:00Z"),
            (["plot", "--sensor", "a", "--out", "a.pdf"], "name a .png or .svg file"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, arguments: list[str], why: str, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert why in refused(arguments, capsys)

    def test_reasons_are_those_of_the_checks(self) -> None:
        assert set(kept_readings.REASONS) == set(checks.REASONS)

    def test_rejected_readings_are_listed(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        node.answers["GET /readings/rejected"] = page(
            {"sensor": "a", "reason": "range", "reading": {"t": 99}}
        )
        assert main(["sensors", "rejected", "--sensor", "a", "--reason", "range"]) == 0
        assert node.requests[0][2] == {"sensor": "a", "reason": "range", "limit": "500"}
        assert re.search(r"^a +range +t=99$", capsys.readouterr().out, re.MULTILINE)


class TestSimulate:
    def test_json_is_the_same_for_the_same_seed_times_too(
        self, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ["sensors", "simulate", "weather", "--sensors", "3", "--seconds", "4", "--json", "--seed"]
        shown = []
        for seed in ("7", "7", "8"):
            assert main([*arguments, seed]) == 0
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1] != shown[2]
        readings = [json.loads(line) for line in shown[0].splitlines()]
        assert len(readings) == 12
        assert all(parse_time(each["time"]) for each in readings)
        assert set(readings[0]) == {"sensor", "time", "temperature", "humidity", "pressure", "wind"}
        assert not node.requests

    def test_every_network_can_be_simulated(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        for kind in KINDS:
            assert main(["sensors", "simulate", kind, "--sensors", "1", "--seconds", "1", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["sensor"] == f"{kind}-1"

    def test_a_start_moves_all_times(self, node: Node, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--sensors", "1", "--seconds", "1", "--json", "--start", "2026-01-31T12:00:00Z"]
        assert main(["sensors", "simulate", "weather", *options]) == 0
        assert json.loads(capsys.readouterr().out)["time"].startswith("2026-01-31T12:00:00.")

    def test_sensors_are_registered_before_their_readings_are_posted(
        self, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["POST /readings"] = {"accepted": 2, "rejected": 0, "errors": []}
        options = ["--sensors", "2", "--seconds", "1", "--speed", "max", "--url", "http://there:1/wsn"]
        assert main(["sensors", "simulate", "weather", *options]) == 0
        assert [path for _, path, *_ in node.requests] == ["/sensors", "/readings"]
        assert node.types[1] == "application/x-ndjson"
        assert [line["sensor"] for line in node.lines[1:]] == ["weather-1", "weather-2"]
        assert capsys.readouterr().out == "2 readings: 2 accepted, 0 rejected\n"

    def test_a_network_of_which_nothing_is_accepted_is_a_failure(
        self, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["POST /readings"] = {
            "accepted": 0, "rejected": 1, "errors": [{"index": 0, "reason": "time"}],
        }  # fmt: skip
        options = ["--sensors", "1", "--seconds", "1", "--speed", "max"]
        assert main(["sensors", "simulate", "weather", *options]) == 1
        said = capsys.readouterr()
        assert said.out == "1 reading: 0 accepted, 1 rejected (time 1)\n"
        assert said.err == "`hpwsn sensors rejected` says what is wrong with each\n"

    def test_described_readings_register_their_sensors_by_themselves(self, node: Node) -> None:
        options = ["--sensors", "2", "--seconds", "3", "--speed", "max", "--describe"]
        assert main(["sensors", "simulate", "weather", *options]) == 0
        assert [path for _, path, *_ in node.requests] == ["/readings"]
        all_checks = ReadingChecks({}.get, max_age=60_000, max_ahead=0, auto_register=True)
        found = [all_checks.check(line, parse_time(line["time"]) or 0) for line in node.lines]
        assert [each.sensor.id for each in found if isinstance(each, Newcomer)] == [
            "weather-1",
            "weather-2",
        ] * 3
        assert found[0].sensor.quantities["pressure"].unit == "hPa"  # type: ignore[union-attr]
        assert found[0].sensor.place is not None  # type: ignore[union-attr]

    def test_fast_readings_end_now_and_not_in_the_future(self, node: Node) -> None:
        options = ["--sensors", "1", "--seconds", "3600", "--interval", "60", "--speed", "max"]
        before = instant("now").timestamp() * 1000
        assert main(["sensors", "simulate", "weather", *options]) == 0
        times = [parse_time(line["time"]) or 0 for line in node.lines[1:]]
        assert len(times) == 60
        assert before - 3_600_000 - 1000 <= times[0] < before - 3_500_000
        assert times[-1] < instant("now").timestamp() * 1000

    def test_all_that_is_printed_and_sent_is_the_same(
        self, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        options = ["--sensors", "2", "--seconds", "2", "--speed", "max", "--url", "http://there:1", "--json"]
        assert main(["sensors", "simulate", "earthquake", *options]) == 0
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert printed == node.lines[1:]
        assert len(printed) == 4

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (["tides"], "invalid choice: 'tides'"),
            (["weather", "--sensors", "0"], "'0' is not a whole number above 0"),
            (["weather", "--sensors", "1000001", "--json"], "give 1 to 1000000"),
            (["weather", "--seconds", "-1"], "'-1' is not a number of seconds"),
            (["weather", "--speed", "0"], "'0' is not a number above 0; write such as 10, or max"),
            (["weather", "--spikes", "2"], "'2' is not a number from 0 to 1"),
            (["weather", "--mqtt", "http://there"], "write mqtt://HOST:PORT"),
            (["weather", "--mqtt", "mqtt://there", "--mqtt-topic", "a/+"], "--mqtt-topic: 'a/+' must name"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, arguments: list[str], why: str, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert why in refused(["simulate", *arguments], capsys)
        assert not node.requests


class TestFeed:
    @pytest.fixture(autouse=True)
    def quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading_post, "PAUSE", 0.001)

    def test_lines_go_in_batches(
        self, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "a.json").write_text("".join(f'{{"sensor": "a", "t": {n}}}\n\n' for n in range(5)))
        node.answers["POST /readings"] = {"accepted": 2, "rejected": 0, "errors": []}
        assert main(["sensors", "feed", "a.json", "--batch", "2", "--json"]) == 0
        assert [len(data.splitlines()) for *_, data in node.requests] == [2, 2, 1]
        assert [line["t"] for line in node.lines] == list(range(5))
        assert json.loads(capsys.readouterr().out) == {"sent": 6, "accepted": 6, "rejected": {}}

    def test_a_registered_publisher_names_its_registration(self, node: Node, tmp_path: Path) -> None:
        (tmp_path / "a").write_text('{"t": 1}')
        assert main(["sensors", "feed", "a", "--registration", "r-1"]) == 0
        assert [each.get("Hpwsn-Registration") for each in node.headers] == ["r-1"]

    def test_each_batch_of_csv_has_the_header(self, node: Node, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("time,t\n1,2\n3,4\n5,6")
        node.answers["POST /sensors/roof-1/readings"] = {"accepted": 1, "rejected": 0, "errors": []}
        assert main(["sensors", "feed", "a.csv", "--sensor", "roof-1", "--batch", "3"]) == 0
        assert [data for *_, data in node.requests] == [b"time,t\n1,2\n3,4", b"time,t\n5,6"]
        assert node.types == ["text/csv", "text/csv"]

    def test_a_rejected_line_is_named_and_none_accepted_is_a_failure(
        self, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "a").write_text("{}\n" * 3)
        node.answers["POST /readings"] = {
            "accepted": 0, "rejected": 1, "errors": [{"index": 0, "reason": "malformed"}],
        }  # fmt: skip
        assert main(["sensors", "feed", "a", "--batch", "1"]) == 1
        said = capsys.readouterr()
        assert said.out == "3 readings: 0 accepted, 3 rejected (malformed 3)\n"
        *shown, hint = said.err.splitlines()
        assert [line.split(" reading ")[1] for line in shown] == [
            f"{n} is rejected: malformed" for n in (1, 2, 3)
        ]
        assert hint == "`hpwsn sensors rejected` says what is wrong with each"

    def test_a_batch_is_repeated_while_the_node_is_away(
        self, node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        answers = iter(
            [
                {"accepted": 1, "errors": []},
                NodeRequestFailed("no node answers"),
                NodeRequestFailed("it is full", 503),
                {"accepted": 1, "errors": []},
            ]
        )
        node.answers["POST /readings"] = lambda: next(answers)
        (tmp_path / "a").write_text('{"t": 1}\n{"t": 2}\n')
        assert main(["sensors", "feed", "a", "--batch", "1"]) == 0
        assert [line["t"] for line in node.lines] == [1, 2, 2, 2]
        assert capsys.readouterr().err.count("trying again in") == 2

    @pytest.mark.parametrize(
        ("problem", "patience"),
        [(NodeRequestFailed("away"), "60"), (NodeRequestFailed("full", 503), "0.001")],
    )
    def test_a_wrong_address_and_the_end_of_patience_end_it(
        self, problem: Exception, patience: str, node: Node, tmp_path: Path
    ) -> None:
        node.answers["POST /readings"] = problem
        (tmp_path / "a").write_text("{}\n")
        assert main(["sensors", "feed", "a", "--patience", patience]) == 1
        assert len(node.requests) <= 2

    def test_the_output_of_a_command_is_posted(self, node: Node) -> None:
        node.answers["POST /readings"] = {"accepted": 1, "errors": []}
        assert main(["sensors", "feed", "--command", """printf '{"t": 1}\\n{"t": 2}\\n'"""]) == 0
        assert [line["t"] for line in node.lines] == [1, 2]

    @pytest.mark.parametrize(
        ("command", "why"),
        [("false", "'false' ended with status 1"), ("no-such-command", "no-such-command: No such file")],
    )
    def test_a_command_that_fails_is_named(
        self, command: str, why: str, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["sensors", "feed", "--command", command]) == 1
        assert why in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            ([], "give a file of readings, - for standard input, or --command"),
            (["a", "--command", "b"], "give a file of readings, - for standard input, or --command"),
            (["missing"], "missing does not exist"),
            (["-", "--follow"], "--follow is for files"),
            (["-", "--on-demand"], "--on-demand needs --sensor or --kind"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, arguments: list[str], why: str, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert why in refused(["feed", *arguments], capsys)

    def test_a_sensor_that_nobody_can_stop_is_named(
        self, node: Node, capsys: pytest.CaptureFixture[str]
    ) -> None:
        node.answers["GET /sensors/a"] = {**ROOF, "wanted": None}
        assert main(["sensors", "feed", "-", "--sensor", "a", "--on-demand"]) == 1
        assert 'a is not registered with "on_demand": true' in capsys.readouterr().err

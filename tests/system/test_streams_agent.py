"""Services that the node runs itself: POST, DELETE, every form of reading, crashes and restarts, limits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import psutil
import pyarrow as pa
import pytest
from yarl import URL

from hpwsn.commands.main import main
from hpwsn.streams.agent.posted_definition import MAX_DEFINITION
from hpwsn.streams.spark.reading.broker_link import BrokerLink, BrokerRefused
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.needs import need
from tests.patience import eventually, holds
from tests.raw_soap import call, subscribe
from tests.scraped import scrape
from tests.spark import cheap_environment
from tests.stream_jobs import logged, publish
from tests.system.test_streams_door import FLOW, ask, content, socket_events, stream_events

URI = "urn:example:even"
EVEN = f"""\
uri = "{URI}"
topic = "numbers:even"
description = "Even numbers"

[inputs.numbers]
source = "topic"
topic = "numbers:all"
schema = "n BIGINT, even BOOLEAN"

[[ops]]
op = "filter"
where = "even = true"

[constraints]
n = ">= 0"
"""
FUNCTION = EVEN.replace(
    'op = "filter"\nwhere = "even = true"', 'op = "function"\nfunction = "copy:copy"\nschema = "n BIGINT"'
)
FORMS = ("application/json", "application/vnd.hpwsn.rows", "application/vnd.apache.arrow.stream")
AGENT = ("--set", "streams.agent=true", "--set", "streams.master=local[1]")


async def start(node: NodeProcess, definition: str | bytes, **headers: str) -> tuple[int, Any]:
    return await ask("POST", f"{node.base}/streams", data=definition, headers=headers)


async def shown(node: NodeProcess, uri: str = URI, **headers: str) -> dict[str, Any]:
    status, found = await ask("GET", f"{node.base}/streams/{quote(uri, safe=':')}", headers=headers)
    assert status == 200, found
    return dict(found)


async def state_is(node: NodeProcess, state: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def reached() -> bool:
        found.update(await shown(node))
        assert state == "failed" or found["state"] != "failed", found
        return bool(found["state"] == state)

    await eventually(reached)
    return found


def nothing_runs(node: NodeProcess) -> bool:
    folder = node.data / "streams"
    return not folder.exists() or not any(folder.iterdir())


async def test_a_node_runs_no_services_unless_its_operator_wants_it(node: NodeProcess) -> None:
    status, answer = await start(node, EVEN)
    assert (status, "streams.agent = true" in answer["error"]) == (403, True)
    assert nothing_runs(node)
    assert (await ask("GET", f"{node.base}/streams/{URI}"))[0] == 404
    assert (await ask("GET", f"{node.base}/streams/{URI}/events"))[0] == 404


async def test_definitions_that_are_wrong_or_not_allowed_start_nothing(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "node", *AGENT, "--set", "streams.agent_folder=/data") as node:
        for definition, lines in (
            ("uri = \n", [1]),
            (EVEN.replace('"even = true"', '"odd = 1"'), [12]),
            (EVEN.replace('op = "filter"', 'op = "fitler"').replace('n = ">= 0"', 'n = "><"'), [11, 15]),
            (FUNCTION, [10]),
            (EVEN.replace('source = "topic"', 'source = "files"\npath = "/etc"\nformat = "csv"'), [5]),
            ("[[services]]\nuri = 'a'\n[[services]]\nuri = 'b'\n", [3]),
            ("a = " + "[" * 5000, None),
        ):
            status, answer = await start(node, definition)
            assert status == 400, (definition, answer)
            found = [problem["line"] for problem in answer["problems"]]
            assert lines is None or found == lines, answer
            assert all(problem["message"] in answer["error"] for problem in answer["problems"])
        assert (await start(node, b"\xff"))[0] == 400
        assert (await start(node, EVEN.replace(URI, "u" * 5000)))[0] == 400
        padded = (EVEN.replace(URI, "") + "#").ljust(MAX_DEFINITION, "x")
        assert (await start(node, padded))[0] == 400
        assert (await start(node, padded + "x"))[0] == 413

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(MAX_DEFINITION // 1024 + 1):
                yield b"#" * 1024

        assert (await ask("POST", f"{node.base}/streams", data=chunks()))[0] == 413
        for origin in ("https://evil.example", "null"):
            status, answer = await start(node, EVEN, Origin=origin)
            assert (status, "server.cors_origins" in answer["error"]) == (403, True)
        # A foreign page whose name was given the address of the node.
        rebound = f"evil.example:{node.port}"
        assert (await start(node, EVEN, Origin=f"http://{rebound}", Host=rebound))[0] == 403
        assert (await start(node, "", Origin=node.base))[0] == 400
        for method in ("PUT", "DELETE"):
            one = f"{node.base}/streams/{URI}"
            assert (await ask(method, one, json=FLOW, headers={"Origin": "https://evil.example"}))[0] == 403
        # Somebody else's job of the same service.
        await ask("PUT", f"{node.base}/streams/{URI}", json=FLOW)
        status, answer = await start(node, EVEN)
        assert (status, "is already running (run-1)" in answer["error"]) == (409, True)
        assert nothing_runs(node)
        assert (await shown(node))["pid"] is None


async def test_a_fixed_tree_refuses_services_of_other_topics(tmp_path: Path) -> None:
    (tmp_path / "topics.toml").write_text("[topics.numbers.all]\n")
    with NodeProcess(tmp_path / "node", *AGENT, "--topics", str(tmp_path / "topics.toml")) as node:
        for definition, refused in (
            (EVEN, "numbers:even"),
            (EVEN.replace("numbers:all", "numbers:odd"), "numbers:odd"),
        ):
            status, answer = await start(node, definition)
            assert (status, refused in answer["error"]) == (404, True)
        assert nothing_runs(node)


async def test_a_job_that_keeps_crashing_fails_with_its_log_and_can_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    settings = ("agent_functions=true", "agent_limit=1", "restarts=1", "limit=2")
    extra = [part for setting in settings for part in ("--set", f"streams.{setting}")]
    with NodeProcess(tmp_path / "node", *AGENT, *extra) as node:
        status, answer = await start(node, FUNCTION)
        assert (status, answer) == (201, {"uri": URI})
        # Its constraints hold and its events are read before its job has ever run.
        url = f"{node.base}/streams/{URI}/events"
        assert await ask("GET", url) == (200, [])
        assert (await ask("GET", url, params={"filter": "n < 0"}))[0] == 400
        assert (await start(node, EVEN))[0] == 409
        status, answer = await start(node, EVEN.replace(URI, "urn:other"))
        assert (status, "streams.agent_limit" in answer["error"]) == (503, True)
        failed = await state_is(node, "failed")
        assert (failed["restarts"], failed["pid"]) == (1, None)
        assert any("nowhere" in line for line in failed["log"]), failed["log"]
        assert "hpwsn: error: " + failed["reason"] in failed["log"]
        assert failed["log_note"] is None
        metrics = await asyncio.to_thread(scrape, node.base)
        assert metrics.value("hpwsn_agent_failed_services") == 1
        # Started again after a restart of the node, and by another POST.
        node.terminate()
        node.start()
        assert (await shown(node))["state"] in ("starting", "restarting")
        await state_is(node, "failed")
        assert (await start(node, EVEN))[0] == 201
        assert "filter" in (await shown(node))["plan"]["operators"][0]["operator"]
        await state_is(node, "failed")
        assert (await ask("DELETE", f"{node.base}/streams/{URI}"))[0] == 204
        assert nothing_runs(node)
        for method in ("GET", "DELETE"):
            assert (await ask(method, f"{node.base}/streams/{URI}"))[0] == 404
        # The limit of registered services counts for those that the node runs.
        for uri in ("urn:a", "urn:b"):
            await ask("PUT", f"{node.base}/streams/{uri}", json=FLOW)
        status, answer = await start(node, EVEN)
        assert (status, "streams.limit" in answer["error"]) == (503, True)
        assert nothing_runs(node)


async def test_a_job_gets_the_token_of_jobs_only_from_a_client_that_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    # The environment of a test's node has no variables of HPwsn, unless `env` sets one.
    prefix = ("env", "HPWSN_TOKEN=of-the-environment")
    with NodeProcess(tmp_path / "node", *AGENT, prefix=prefix) as node:
        token = node.data / "job.token"
        if not token.exists():
            token.write_text("secret-of-jobs\n")
        wrong = await start(node, EVEN, Authorization="Bearer guessed")
        assert (wrong[0], "job.token" in wrong[1]["error"]) == (401, True)
        shown_token = {"Authorization": f"Bearer {token.read_text().strip()}"}
        for uri, headers in (("urn:without", {}), ("urn:with", shown_token)):
            assert (await start(node, EVEN.replace(URI, uri), **headers))[0] == 201

        def commands() -> dict[str, bool]:
            saved = [file.parent for file in (node.data / "streams").glob("*/job.json")]
            return {
                json.loads((one / "service.json").read_text())["uri"]: "--token-file"
                in json.loads((one / "job.json").read_text())["command"]
                for one in saved
            }

        await holds(lambda: len(commands()) == 2)
        assert commands() == {"urn:without": False, "urn:with": True}
        seen: list[dict[str, str]] = []

        async def has_run() -> bool:
            # Without Java a job soon ends, and the next one has another id.
            with suppress(psutil.Error, ValueError):
                job = psutil.Process((await shown(node, "urn:without"))["pid"] or -1)
                if "streams" in job.cmdline()[:5]:
                    seen.append(job.environ())
            return bool(seen)

        await eventually(has_run)
        await only_clients_with_the_token_see_the_log(node, shown_token)
        assert "JAVA_HOME" in seen[0]
        assert "HPWSN_TOKEN" not in seen[0]
        for uri in ("urn:without", "urn:with"):
            assert (await ask("DELETE", f"{node.base}/streams/{uri}"))[0] == 204
        assert not jobs_of(node)


async def only_clients_with_the_token_see_the_log(node: NodeProcess, token: dict[str, str]) -> None:
    async def has_a_reason() -> bool:
        found = await shown(node, "urn:with", **token)
        return bool(found["reason"] and found["log"])

    await eventually(has_a_reason)
    (log,) = [
        file.with_name("job.log")
        for file in (node.data / "streams").glob("*/service.json")
        if json.loads(file.read_text())["uri"] == "urn:with"
    ]
    with log.open("a") as job:
        job.write("hpwsn: error: cannot read B34C91\n" * 20)
    hidden = await shown(node, "urn:with")
    assert (hidden["log"], hidden["reason"]) == ([], None)
    assert "show the token of jobs" in hidden["log_note"]
    assert "B34C91" not in json.dumps([hidden, (await ask("GET", f"{node.base}/streams"))[1]])
    seen = await shown(node, "urn:with", **token)
    assert (seen["log_note"], "B34C91" in str(seen["log"])) == (None, True)
    guessed = {"Authorization": "Bearer guessed"}
    assert (await ask("GET", f"{node.base}/streams/urn:with", headers=guessed))[0] == 401
    # The log of a job that reads what everybody may read is for everybody.
    without = await shown(node, "urn:without")
    assert (bool(without["log"]), without["log_note"]) == (True, None)


async def test_a_definition_of_an_internal_input_without_the_token_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "topics.toml").write_text(
        '[topics.numbers.all]\nvisibility = "internal"\n[topics.numbers.even]\n'
    )
    with NodeProcess(tmp_path / "node", *AGENT, "--topics", str(tmp_path / "topics.toml")) as node:
        status, answer = await start(node, EVEN)
        assert (status, "numbers:all" in answer["error"]) == (401, True)
        assert nothing_runs(node)
        assert not jobs_of(node)
        assert (await ask("GET", f"{node.base}/streams/{URI}"))[0] == 404


async def test_stopping_a_job_that_somebody_else_runs_only_forgets_it(
    node: NodeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, told in (
        ((), f"{URI} is forgotten; its job is not run by this node, and was not stopped\n"),
        (("--json",), {"forgotten": URI}),
    ):
        assert (await ask("PUT", f"{node.base}/streams/{URI}", json=FLOW))[0] == 200
        assert await asyncio.to_thread(main, ["streams", "stop", URI, "--url", node.url, *options]) == 0
        found = capsys.readouterr().out
        assert (json.loads(found) if options else found) == told
        assert (await ask("GET", f"{node.base}/streams/{URI}"))[0] == 404
    assert await asyncio.to_thread(main, ["streams", "stop", URI, "--url", node.url]) == 1
    assert "the node has nothing at" in capsys.readouterr().err


def numbers(first: int, last: int) -> list[dict[str, Any]]:
    return [{"n": n, "even": n % 2 == 0} for n in range(first, last)]


@pytest.fixture
def agent_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeProcess]:
    need("Java 17 or later")
    for name, value in cheap_environment(tmp_path / "conf").items():
        monkeypatch.setenv(name, value)
    with NodeProcess(tmp_path / "node", *AGENT, "--set", "streams.stop_timeout=2s") as node:
        yield node
        for one in jobs_of(node):
            one.kill()


def jobs_of(node: NodeProcess) -> list[psutil.Process]:
    """All processes that work in a folder of a service: jobs, and Spark's processes."""
    folder, found = (node.data / "streams").resolve(), []
    for one in psutil.process_iter():
        try:
            if Path(one.cwd()).is_relative_to(folder) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            pass
    return found


async def published_up_to(node: NodeProcess, last: int) -> None:
    """Wait until the service has published the even numbers up to one; none may be missing or repeated."""

    async def there() -> bool:
        found = [event["n"] for event in await logged(node, "numbers:even")]
        assert found == list(range(0, 2 * len(found), 2)), found
        return len(found) == (last + 1) // 2

    await eventually(there)


async def test_a_posted_service_runs_whatever_is_killed_and_ends_when_it_is_deleted(
    agent_node: NodeProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = agent_node
    await publish(node, "numbers:all", numbers(0, 100))
    file = tmp_path / "even.toml"
    file.write_text(EVEN)
    assert await asyncio.to_thread(main, ["streams", "start", str(file), "--wait", "--url", node.url]) == 0
    told = capsys.readouterr()
    assert f"{URI} is running; its events: {node.base}/streams/{quote(URI, safe='')}/events" in told.out
    assert f"{URI} is starting" in told.err
    await published_up_to(node, 100)
    await the_service_is_described(node, capsys)
    await its_events_are_read_in_all_forms(node)
    await its_requests_are_listed(node)
    await it_is_never_started_twice(node)
    first = (await shown(node))["pid"]

    node.kill()
    node.start()
    await publish(node, "numbers:all", numbers(100, 200))
    await published_up_to(node, 200)
    again = await state_is(node, "running")
    assert (again["pid"], again["restarts"]) == (first, 0)

    os.kill(first, signal.SIGKILL)
    await publish(node, "numbers:all", numbers(200, 300))
    await published_up_to(node, 300)
    second = await state_is(node, "running")
    assert (second["pid"] != first, second["restarts"]) == (True, 1)

    assert node.terminate() == 0
    assert psutil.pid_exists(second["pid"])
    for one in jobs_of(node):
        one.kill()
    node.start()
    await publish(node, "numbers:all", numbers(300, 400))
    await published_up_to(node, 400)
    third = await state_is(node, "running")
    assert third["pid"] != second["pid"]

    # A job that does not react to SIGTERM is killed after streams.stop_timeout.
    os.kill(third["pid"], signal.SIGSTOP)
    assert await asyncio.to_thread(main, ["streams", "stop", URI, "--url", node.url]) == 0
    assert f"{URI} has stopped" in capsys.readouterr().out
    assert not psutil.pid_exists(third["pid"])
    assert not jobs_of(node)
    assert nothing_runs(node)
    assert (await ask("GET", f"{node.base}/streams/{URI}"))[0] == 404
    assert await ask("GET", f"{node.base}/streams") == (200, {"items": [], "next": None, "total": 0})
    assert URI not in (node.data / "streams.json").read_text()


async def the_service_is_described(node: NodeProcess, capsys: pytest.CaptureFixture[str]) -> None:
    found = await shown(node)
    assert psutil.Process(found["pid"]).is_running()
    assert {name: found[name] for name in ("uri", "topic", "state", "constraints", "restarts")} == {
        "uri": URI,
        "topic": "numbers:even",
        "state": "running",
        "constraints": {"n": ">= 0"},
        "restarts": 0,
    }
    assert found["plan"]["operators"][0]["operator"] == "filter even = true"
    assert found["plan"]["diagram"][0] == "topic numbers:even"

    async def has_figures() -> bool:
        now = await shown(node)
        return "rows_out" in now["figures"] and now["lag"] == 0

    await eventually(has_figures)
    assert await asyncio.to_thread(main, ["streams", "show", URI, "--url", node.url]) == 0
    assert "└── filter even = true" in capsys.readouterr().out
    assert await asyncio.to_thread(main, ["streams", "list", "--url", node.url, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["items"]
    assert (listed["pid"], "plan" in listed) == (found["pid"], False)


async def its_events_are_read_in_all_forms(node: NodeProcess) -> None:
    service, topic = f"{node.base}/streams/{URI}/events", f"{node.base}/topics/numbers:even/events"
    params = {"filter": "n > 90", "max": "3", "after": "0"}
    async with aiohttp.ClientSession() as session:
        bodies = []
        for url in (service, topic):
            for accept in FORMS:
                async with session.get(url, params=params, headers={"Accept": accept}) as answer:
                    assert (answer.status, answer.content_type) == (200, accept)
                    bodies.append((await answer.read(), answer.headers["Hpwsn-After"]))
        assert bodies[:3] == bodies[3:]
        assert [event["data"]["n"] for event in json.loads(bodies[0][0])] == [92, 94, 96]
        assert pa.ipc.open_stream(bodies[2][0]).read_all().num_rows == 3
        async with session.head(service, params={"after": "0"}) as answer:
            assert (answer.status, answer.headers["Hpwsn-Waiting"]) == (200, "50")
        for headers in ({}, {"Accept": "text/event-stream"}):
            refused = await ask("GET", service, params={"filter": "n < 0"}, headers=headers)
            assert (refused[0], "lies outside the constraint" in refused[1]["error"]) == (400, True)


async def its_requests_are_listed(node: NodeProcess) -> None:
    service = f"{node.base}/streams/{URI}/events"
    async with Consumer() as consumer, aiohttp.ClientSession() as session:
        filters = content("n &gt; 50")
        await call(node.url, subscribe(consumer.url, "numbers", filters=filters))
        await call(node.url, subscribe(consumer.url, "others", filters=filters))
        stream_query = {"filter": "n > 70", "after": "0"}
        async with (
            session.get(service, params=stream_query, headers={"Accept": "text/event-stream"}) as stream,
            session.ws_connect(f"{service}?filter=n%20%3E%2080&after=0") as socket,
            session.get(f"{node.base}/topics/others/events", headers={"Accept": "text/event-stream"}),
        ):
            assert (await stream_events(stream, 1))[0]["data"]["n"] == 72
            assert (await socket_events(socket, 1))[0]["data"]["n"] == 82
            requests = (await shown(node))["requests"]
        assert requests["total"] == 3
        assert {(one["kind"], *one["filter"]) for one in requests["items"]} == {
            ("stream", "n > 70"),
            ("socket", "n > 80"),
            ("subscription", "n > 50"),
        }

        async def only_the_subscription() -> bool:
            return bool((await shown(node))["requests"]["total"] == 1)

        await eventually(only_the_subscription)


async def it_is_never_started_twice(node: NodeProcess) -> None:
    status, answer = await start(node, EVEN)
    assert (status, "already runs" in answer["error"]) == (409, True)

    def run_elsewhere() -> None:
        """What a job with another checkpoint does first."""
        with closing(BrokerLink(node.url)) as link:
            link.register(URI, FLOW | {"topic": "numbers:even"})

    with pytest.raises(BrokerRefused, match="another checkpoint"):
        await asyncio.to_thread(run_elsewhere)
    assert len([one for one in jobs_of(node) if "streams" in one.cmdline()]) == 1


async def test_services_with_any_uri_are_read_by_their_address(shared_node: NodeProcess) -> None:
    await publish(shared_node, "addressed", [{"n": 1}])
    for uri in ("urn:example:addressed", "http://example.org/flows?x=1#a", "a b/ü%41"):
        one = f"{shared_node.base}/streams/{quote(uri, safe=':')}"
        exact = URL(one, encoded=True)
        async with aiohttp.ClientSession() as session:
            async with session.put(exact, json=FLOW | {"topic": "addressed"}) as answer:
                assert (answer.status, (await answer.json())["uri"]) == (200, uri)
            async with session.get(URL(f"{one}/events", encoded=True)) as answer:
                assert [event["data"] for event in await answer.json()] == [{"n": 1}]
            async with session.delete(exact) as answer:
                assert answer.status == 204

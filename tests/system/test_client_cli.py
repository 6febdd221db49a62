"""publish and listen as processes, against a scripted broker on a real socket."""

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import hpwsn_client
from hpwsn_client import Client, EndpointReference
from hpwsn_client.arguments import notification_message
from hpwsn_client.wsn.formats.json_events import decode_event
from hpwsn_client.wsn.operations.messages import (
    CreatePullPoint,
    CreatePullPointResponse,
    DestroyPullPoint,
    DestroyPullPointResponse,
    GetMessages,
    GetMessagesResponse,
    Subscribe,
    SubscribeResponse,
    Unsubscribe,
    UnsubscribeResponse,
)
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault, TopicNotSupportedFault
from hpwsn_client.wsn.soap.names import hp
from tests.harness import NodeProcess
from tests.patience import PATIENCE
from tests.system.scripted_broker import ScriptedBroker

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PIPE = asyncio.subprocess.PIPE
ROOT = Path(hpwsn_client.__file__).parent.parent


@pytest.fixture
async def broker():
    async with ScriptedBroker() as scripted:
        scripted.script = {
            Subscribe: SubscribeResponse(EndpointReference(f"{scripted.base}/s/1"), NOW, None),
            Unsubscribe: UnsubscribeResponse(),
            CreatePullPoint: CreatePullPointResponse(EndpointReference(f"{scripted.base}/p/1")),
            GetMessages: GetMessagesResponse(()),
            DestroyPullPoint: DestroyPullPointResponse(),
        }
        yield scripted


async def start(*args, url=None):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"}
    env.pop("HPWSN_URL", None)
    if url is not None:
        env["HPWSN_URL"] = url
    command = [sys.executable, "-m", "hpwsn_client.commands.main", *args]
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env)


async def run(*args, url=None, stdin=b""):
    process = await start(*args, url=url)
    out, err = await process.communicate(stdin)
    return process.returncode, out.decode(), err.decode()


async def listening(*args, url):
    """The process once it has subscribed, and the line that says so."""
    process = await start("listen", *args, url=url)
    line = await process.stderr.readline()
    assert line.startswith(b"listening"), line + await process.stderr.read()
    return process


def consumer_of(broker):
    (subscribe,) = (a.message for a in broker.asked if isinstance(a.message, Subscribe))
    return subscribe.consumer.address


def asked_types(broker):
    return [type(asked.message).__name__ for asked in broker.asked]


async def test_publish_sends_its_argument(broker):
    assert await run("publish", "A:B", "héllo", "--message-id", "7", "--url", broker.url) == (0, "", "")
    (asked,) = broker.asked
    assert str(asked.message[0].topic.topic) == "A:B"
    assert broker.notified() == [["héllo"]]
    assert asked.envelope.header(hp("MessageId")).text == "7"


async def test_publish_takes_xml_from_standard_input_and_the_url_from_the_environment(broker):
    declared = '<?xml version="1.0" encoding="iso-8859-1"?>\n<a>é</a>\n'.encode("latin-1")
    assert (await run("publish", "A", "-", url=broker.url, stdin=declared))[0] == 0
    assert broker.asked[0].message[0].payload == "<a>é</a>".encode()


async def test_publish_lines_sends_each_line_and_skips_empty_ones(broker):
    lines = b"one\r\ntwo\n\n<three>\nfour"
    assert await run("publish", "A", "-", "--lines", "--text", url=broker.url, stdin=lines) == (0, "", "")
    assert broker.notified() == [["one", "two", "<three>"], ["four"]]


async def test_publish_lines_does_not_wait_for_the_end_of_a_slow_pipe(broker):
    arrived = asyncio.Event()

    async def arrive():
        arrived.set()

    broker.before_answer = arrive
    process = await start("publish", "A", "-", "--lines", url=broker.url)
    process.stdin.write(b"first\n")
    await asyncio.wait_for(arrived.wait(), PATIENCE)
    await process.communicate(b"second\n")
    assert process.returncode == 0
    assert broker.notified() == [["first"], ["second"]]


async def test_publish_repeats(broker):
    assert (await run("publish", "", "x", "--repeat", "250", url=broker.url))[0] == 0
    assert [len(texts) for texts in broker.notified()] == [100, 100, 50]
    assert broker.asked[0].message[0].topic is None


async def test_publish_sends_json_as_json(broker):
    for payload in ('{"speed": 61.5}', ' [{"speed": 61.5}, {"vid": "21", "tags": ["a"]}]'):
        assert await run("publish", "A", payload, url=broker.url) == (0, "", "")
    events = [[decode_event(message.payload) for message in asked.message] for asked in broker.asked]
    assert events == [[{"speed": 61.5}], [{"speed": 61.5}, {"vid": "21", "tags": ["a"]}]]


async def test_publish_lines_and_repeats_of_json(broker):
    lines = b'{"n": 1}\nplain\n<x/>\n'
    assert await run("publish", "A", "-", "--lines", url=broker.url, stdin=lines) == (0, "", "")
    assert [message.payload for message in broker.asked[0].message][2] == b"<x/>"
    assert decode_event(broker.asked[0].message[0].payload) == {"n": 1}
    assert await run("publish", "A", '[{"n": 1}, {"n": 2}]', "--repeat", "2", url=broker.url) == (0, "", "")
    assert [decode_event(message.payload)["n"] for message in broker.asked[1].message] == [1, 2, 1, 2]


async def test_a_payload_that_only_looks_like_json_is_text_with_a_warning(broker):
    for payload in ('{"speed": ', "[3] is the third", "[1, 2]"):
        code, out, err = await run("publish", "A", payload, url=broker.url)
        assert (code, out) == (0, "")
        assert err.startswith("hpwsn: warning: published as text, since it is not JSON: ")
        assert broker.notified()[-1] == [payload]
        code, _, err = await run("publish", "A", payload, "--as", "json", url=broker.url)
        assert (code, err.startswith("hpwsn: error: ")) == (2, True)
    assert len(broker.asked) == 3


@pytest.mark.parametrize(
    ("form", "payload", "sent"),
    [
        ("text", '{"speed": 61.5}', b'<hp:text xmlns:hp="urn:hpwsn:1">{"speed": 61.5}</hp:text>'),
        ("text", "<a/>", b'<hp:text xmlns:hp="urn:hpwsn:1">&lt;a/&gt;</hp:text>'),
        ("xml", " <a/>", b"<a/>"),
        ("json", '{"a": null}', b'<hp:event xmlns:hp="urn:hpwsn:1"><a hp:type="null"/></hp:event>'),
    ],
)
async def test_as_says_what_a_payload_is(broker, form, payload, sent):
    assert await run("publish", "A", payload, "--as", form, url=broker.url) == (0, "", "")
    assert broker.asked[0].message[0].payload == sent


async def test_a_fault_is_one_line_and_status_1(broker):
    broker.script[tuple] = TopicNotSupportedFault("no topic A:B here; see hpwsn topics list")
    code, out, err = await run("publish", "A:B", "x", url=broker.url)
    assert (code, out) == (1, "")
    assert err.startswith("hpwsn: error: ")
    assert "no topic A:B here" in err
    assert err.count("\n") == 1


async def test_nobody_at_the_url_is_one_line_and_status_1():
    code, _, err = await run("publish", "A", "x", "--url", "http://127.0.0.1:9/wsn")
    assert code == 1
    assert "cannot connect to http://127.0.0.1:9/wsn (Connection refused); start the broker" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        ["publish", "A", "<a>"],
        ["publish", "A", "x", "--lines"],
        ["publish", "A", "x", "--repeat", "2", "--message-id", "i"],
        ["publish", "A", "x", "--message-id", ""],
        ["publish", "A", '[{"n": 1}, {"n": 2}]', "--message-id", "i"],
        ["publish", "A", "x", "--as", "xml"],
        ["publish", "A", "x", "--as", "yaml"],
        ["publish", "A", "x", "--as", "json", "--text"],
        ["publish", "A", "x", "--repeat", "0"],
        ["publish", "A", "x", "--url", "here"],
        ["publish", "A"],
        ["publish", "x y", "z"],
        ["listen", "x y"],
        ["listen", "A", "--count", "0"],
        ["listen", "A", "--expires", "-1"],
        ["listen", "A", "--host", "0.0.0.0"],
        [],
    ],
)
async def test_wrong_arguments_are_status_2(args, broker):
    code, out, err = await run(*args, url=broker.url)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("hpwsn: error: ")
    assert broker.asked == []


async def test_listen_prints_a_line_for_each_notification_and_stops_at_the_count(broker):
    process = await listening("ALL", "--count", "3", url=broker.url)
    async with Client(consumer_of(broker)) as client:
        await client.notify_many([("ALL:A", "one"), ("{urn:far}B", "<b>\n<c/></b>"), (None, "three")])
    out, err = await process.communicate()
    assert out.decode() == "ALL:A\tone\n{urn:far}B\t<b> <c/></b>\n\tthree\n"
    assert (process.returncode, err) == (0, b"")
    assert asked_types(broker) == ["Subscribe", "Unsubscribe"]


async def test_listen_prints_json(broker):
    process = await listening(
        "*", "--json", "--count", "2", "--filter", "level > 2", "--expires", "60", url=broker.url
    )
    async with Client(consumer_of(broker)) as client:
        await client.notify("A", "größer\nthan", message_id="7", producer="http://p/")
        await client.notify("A", "<level>3</level>")
    out, _ = await process.communicate()
    text, xml = map(json.loads, out.decode().splitlines())
    assert (text["topic"], text["text"], text["producer"], text["message_id"]) == (
        "A",
        "größer\nthan",
        "http://p/",
        "7",
    )
    assert (xml["text"], xml["payload"], xml["subscription"]) == (None, "<level>3</level>", None)
    subscribe = broker.asked[0].message
    assert (subscribe.filter.topics, subscribe.filter.content[0].expression) == ((), "level > 2")
    assert subscribe.termination.seconds == 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("way", [[], ["--pull"]])
async def test_a_signal_ends_listening_and_leaves_nothing_at_the_broker(broker, number, way):
    process = await listening("ALL", *way, url=broker.url)
    process.send_signal(number)
    out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
    left = {"Subscribe", "Unsubscribe"} | (
        {"CreatePullPoint", "DestroyPullPoint", "GetMessages"} if way else set()
    )
    assert set(asked_types(broker)) | {"GetMessages"} == left | {"GetMessages"}


async def test_listen_pulls_from_a_pull_point(broker):
    answers = iter([(), (notification_message("A", "one"),), (notification_message("A", "two"),)])
    broker.script[GetMessages] = lambda _: GetMessagesResponse(next(answers))
    process = await listening("A", "--pull", "--count", "2", url=broker.url)
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"A\tone\nA\ttwo\n")
    assert asked_types(broker)[-2:] == ["Unsubscribe", "DestroyPullPoint"]
    assert consumer_of(broker) == f"{broker.base}/p/1"


@pytest.mark.parametrize("way", [[], ["--pull"]])
async def test_listening_ends_with_the_subscription(broker, way):
    process = await listening("A", "--expires", "0.3", *way, url=broker.url)
    await process.communicate()
    assert process.returncode == 0


async def test_pulling_goes_on_when_a_node_is_back_and_says_once_that_it_was_away(tmp_path):
    with NodeProcess(tmp_path / "data") as node:
        process = await listening("A", "--pull", "--count", "2", url=node.url)
        assert await run("publish", "A", "before", url=node.url) == (0, "", "")
        assert b"before" in await process.stdout.readline()
        node.kill()
        assert b"retrying" in await process.stderr.readline()
        node.start()
        assert await run("publish", "A", "after", url=node.url) == (0, "", "")
        out, err = await process.communicate()
    assert (process.returncode, b"after" in out, err) == (0, True, b"")


async def test_a_reader_that_goes_away_ends_listening_quietly(broker):
    process = await listening("A", url=broker.url)
    process.stdout._transport.close()
    async with Client(consumer_of(broker)) as client:
        await client.notify("A", "x")
    assert await process.wait() == 0
    assert await process.stderr.read() == b""
    assert asked_types(broker) == ["Subscribe", "Unsubscribe"]


async def test_a_filter_that_the_broker_refuses_is_status_1(broker):
    broker.script[Subscribe] = InvalidMessageContentExpressionFault("'((' is no XPath")
    code, _, err = await run("listen", "A", "--filter", "((", url=broker.url)
    assert code == 1
    assert "'((' is no XPath" in err


@pytest.mark.parametrize("command", ["publish", "listen"])
async def test_help_shows_examples_and_the_broker_meant(command):
    code, out, _ = await run(command, "--help", url="http://over.there/wsn")
    assert code == 0
    assert "examples:" in out
    assert "http://over.there/wsn" in out

"""`hpwsn subscriptions` against an operator API on a real socket, with answers good and bad."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, TCPServer
from threading import Thread

import pytest

from hpwsn.commands.main import main

ONE = {
    "id": "a/b",
    "reference": "http://h/wsn/subscriptions/a%2Fb",
    "consumer": "http://c/",
    "topics": ["ALL:ALARM", "ALL:TRAFFIC"],
    "content": [],
    "created": "2024-01-01T00:00:00Z",
    "terminates": None,
    "paused": False,
    "state": "live",
    "waiting": 3,
    "delivered": 5,
    "failures": 0,
    "last_error": None,
}
ANSWERS: dict[tuple[str, str], tuple[int, bytes]] = {
    ("GET", "/subscriptions?limit=500"): (
        200,
        json.dumps({"items": [ONE], "next": "after-a", "total": 2}).encode(),
    ),
    ("GET", "/subscriptions?limit=500&after=after-a"): (
        200,
        json.dumps({"items": [{**ONE, "id": "c"}], "next": None, "total": 2}).encode(),
    ),
    ("GET", "/subscriptions/a%2Fb"): (200, json.dumps(ONE).encode()),
    ("DELETE", "/subscriptions/a%2Fb"): (204, b""),
    ("GET", "/subscriptions/page"): (200, b"<html>"),
    ("GET", "/subscriptions/ill"): (503, b"the journal is full"),
}


class Api(BaseHTTPRequestHandler):
    """Answers from the table, else 404."""

    def answer(self) -> None:
        status, body = ANSWERS.get((self.command, self.path), (404, b'{"error": "gone"}'))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_DELETE = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/wsn"
        monkeypatch.setenv("HPWSN_URL", url)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        yield url
        server.shutdown()
        thread.join()


class Mail(StreamRequestHandler):
    """Greets as a mail server does."""

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example.org ESMTP\r\n")
        self.rfile.readline()


def test_a_server_that_does_not_speak_http_is_told_from_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    with TCPServer(("127.0.0.1", 0), Mail) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        assert main(["subscriptions", "list", "--url", f"{base}/wsn"]) == 1
        thread.join()
    assert f"the server at {base}/subscriptions is not an HPwsn node" in capsys.readouterr().err


@pytest.mark.usefixtures("node")
class TestWithANode:
    def test_list_prints_a_table(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["subscriptions", "list"]) == 0
        heading, row, other = capsys.readouterr().out.splitlines()
        assert other.split()[0] == "c"
        assert heading.split() == [
            "ID", "STATE", "TOPICS", "CONSUMER", "WAITING", "DELIVERED", "FAILURES", "TERMINATES"
        ]  # fmt: skip
        assert row.split() == ["a/b", "live", "ALL:ALARM,", "ALL:TRAFFIC", "http://c/", "3", "5", "0", "-"]

    def test_show_prints_everything(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["subscriptions", "show", "a/b", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == ONE
        assert main(["subscriptions", "show", "a/b"]) == 0
        assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(ONE)

    def test_drop_says_what_it_dropped(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["subscriptions", "drop", "a/b"]) == 0
        assert capsys.readouterr().out == "dropped a/b\n"

    @pytest.mark.parametrize(
        ("which", "words"),
        [
            ("gone", "has nothing at"),
            ("page", "is not an HPwsn node; check --url"),
            ("ill", "HTTP 503 the journal is full"),
        ],
    )
    def test_a_refusal_says_why(self, which: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["subscriptions", "show", which]) == 1
        printed = capsys.readouterr()
        assert (printed.out, printed.err.count("\n")) == ("", 1)
        assert words in printed.err


def test_what_is_no_admin_node_is_told_from_one_that_lacks_something(
    node: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ANSWERS, ("GET", "/api/topology"), (404, b"404: Not Found"))
    assert main(["cluster", "--admin", node.removesuffix("/wsn")]) == 1
    assert "/api/topology does not have this resource" in capsys.readouterr().err


def test_without_a_node_the_remedy_is_told(node: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subscriptions", "list", "--url", "http://127.0.0.1:1/wsn"]) == 1
    assert "start one with `hpwsn serve`, or give --url" in capsys.readouterr().err

"""A job's requests to its node: what is waited for, and what is an error at once."""

import http.client
import pickle

import pytest

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.publishing.task_publishing import Publication
from hpwsn.streams.spark.reading.broker_link import (
    BrokerLink,
    BrokerRefused,
    BrokerUnavailable,
    LogState,
    kept_link,
)
from hpwsn.streams.spark.reading.read_options import parse_read_options


class Response:
    def __init__(self, status, body=b"[]", headers=()):
        self.status, self.reason, self._body, self._headers = status, "Words", body, headers

    def read(self):
        return self._body

    def getheaders(self):
        return list(self._headers)


class Connection:
    """Gives answers in their order; an exception is one, too."""

    host, port = "h", 1

    def __init__(self, *answers):
        self.answers, self.asked, self.headers, self.sock = list(answers), [], [], None

    def request(self, method, path, body, headers):
        self.asked.append((method, path))
        self.headers.append(headers)
        self.sock = object()

    def getresponse(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.sock = None


def link_to(*answers, retry=True):
    pauses = []
    link = BrokerLink("http://127.0.0.1:8080/wsn", retry=retry, sleep=pauses.append)
    link._connection = Connection(*answers)
    return link, link._connection, pauses


def test_the_token_of_the_environment_or_of_the_driver_goes_with_every_request(monkeypatch):
    monkeypatch.setenv("HPWSN_TOKEN", "of-the-environment")
    for given, sent in ((None, "Bearer of-the-environment"), ("of-the-driver", "Bearer of-the-driver")):
        link = BrokerLink("http://h:1/wsn", token=given)
        link._connection = Connection(*[Response(200, b'{"last": 1}', [("Hpwsn-After", "3")])] * 2)
        link.end("A")
        link.publish("A", b"{}\n", "id")
        assert [headers["Authorization"] for headers in link._connection.headers] == [sent, sent]
    with kept_link("http://h:1/wsn", token="x") as one, kept_link("http://h:1/wsn", token="y") as other:
        assert one is not other


def test_no_text_shows_the_token(monkeypatch):
    monkeypatch.setenv("HPWSN_TOKEN", "the-secret")
    options = parse_read_options({"url": "http://h:1/wsn", "subscribe": "A"}, stream=True)
    publication = Publication("http://h:1/wsn", "A", "service")
    assert pickle.loads(pickle.dumps(options)).token == publication.token == "the-secret"
    assert "the-secret" not in f"{options} {publication}"
    link, _, _ = link_to(Response(401, b'{"error": "topic A is internal"}'))
    with pytest.raises(BrokerRefused, match="topic A is internal") as refused:
        link.read("A", 0)
    assert "the-secret" not in str(refused.value)
    monkeypatch.setenv("HPWSN_TOKEN", "the secret")
    with pytest.raises(HpwsnError, match="HPWSN_TOKEN is not a bearer token"):
        BrokerLink("http://h:1/wsn")


def test_a_node_that_is_away_or_busy_is_waited_for_with_growing_pauses():
    trouble = [ConnectionRefusedError(), Response(503), http.client.BadStatusLine(""), *[Response(503)] * 5]
    # A kept connection is tried anew at once, which takes one more answer.
    answers = [*trouble[:3], ConnectionRefusedError(), *trouble[3:], Response(202, b'{"last": 9}')]
    link, connection, pauses = link_to(*answers)
    assert link.publish("a:b", b"{}", "id 1") == 9
    assert connection.asked[0] == ("POST", "/topics/a%3Ab/events?id=id+1")
    assert pauses[:3] == [0.2, 0.4, 0.8]
    assert max(pauses) == 5.0


def test_what_the_node_refuses_is_an_error_at_once():
    link, _, pauses = link_to(Response(409, b'{"error": "another run"}'))
    with pytest.raises(BrokerRefused, match="PUT /streams/urn%3Aa: another run"):
        link.register("urn:a", {})
    assert pauses == []


def test_one_that_is_not_patient_says_so():
    link, _, _ = link_to(ConnectionRefusedError("no"), retry=False)
    with pytest.raises(BrokerUnavailable, match="no node answers at h:1: no"):
        link.end("a")


def test_a_connection_that_was_kept_and_is_closed_is_made_again_without_a_pause():
    link, connection, pauses = link_to(
        Response(200, b"", [("Hpwsn-After", "7")]),
        http.client.RemoteDisconnected(),
        Response(200, b"[]", [("Hpwsn-After", "8")]),
    )
    assert link.end("a") == 7
    assert link.read("a", 5, limit=2, wait=0.5).upto == 8
    assert connection.asked[-1] == ("GET", "/topics/a/events?after=5&max=2&wait=0.5")
    assert pauses == []


def test_a_malformed_node_address_is_rejected():
    with pytest.raises(HpwsnError, match="is not the address of a node"):
        BrokerLink("localhost:8080")


def test_one_head_request_asks_for_all_that_a_batch_needs():
    headers = [("Hpwsn-After", "90"), ("Hpwsn-Oldest", "5"), ("Hpwsn-Waiting", "7"), ("Hpwsn-Upto", "60")]
    link, connection, _ = link_to(Response(200, b"", headers), Response(200, b"", [("Hpwsn-After", "0")]))
    assert link.look(["a:b", "c d"], after=3, limit=50, wait=0.5) == LogState(90, 5, 7, 60)
    assert connection.asked == [("HEAD", "/topics/a%3Ab/events?after=3&max=50&wait=0.5&also=c+d")]
    assert link.look(["a"], since=1000) == LogState(0)


def test_a_node_that_does_not_say_what_it_removed_gives_pages_without_it():
    link, _, _ = link_to(Response(200, b'{"rows": 0, "runs": []}\n', [("Hpwsn-After", "5")]))
    assert link.rows(["a"], 3, 9, limit=100).oldest == 0


def test_a_refused_head_request_says_why_by_a_get():
    refusal = Response(404, b'{"error": "c is not in the topic set"}')
    link, connection, _ = link_to(Response(404, b""), refusal)
    with pytest.raises(BrokerRefused, match="c is not in the topic set"):
        link.look(["a", "c"], after=3, limit=10)
    assert connection.asked[-1] == ("GET", "/topics/a/events?also=c&max=1")
    link, _, _ = link_to(Response(400, b""), Response(200))
    with pytest.raises(BrokerRefused, match=r"HEAD .*HTTP 400"):
        link.look(["a"])


def test_a_page_of_rows_is_a_line_of_json_and_the_lines_behind_it():
    body = b'{"rows": 2, "runs": [[4, 2, "a", 5, null]]}\n1\x1fx\n2\x1fy\n'
    link, connection, _ = link_to(Response(200, body, [("Hpwsn-After", "5"), ("Hpwsn-Oldest", "2")]))
    page = link.rows(["a"], 3, 9, ["n", "s"], limit=100, condition="n > 0")
    assert (page.rows, page.runs, bytes(page.lines), page.upto, page.oldest) == (
        *(2, [[4, 2, "a", 5, None]], b"1\x1fx\n2\x1fy\n", 5, 2),
    )
    query = "after=3&upto=9&max=100&column=n&column=s&filter=n+%3E+0&dialect=predicates"
    assert connection.asked == [("GET", f"/topics/a/events?{query}")]


def test_patience_ends():
    link = BrokerLink("http://127.0.0.1:8080/wsn", patience=0.0, sleep=lambda seconds: None)
    link._connection = Connection(ConnectionRefusedError("no"))
    with pytest.raises(BrokerUnavailable, match="no node answers at h:1: no; gave up after 0 s"):
        link.end("a")


def test_a_connection_is_kept_for_the_next_task_unless_a_task_fails():
    with kept_link("http://127.0.0.1:9/wsn") as first, kept_link("http://127.0.0.1:9/wsn") as second:
        assert second is not first
    with kept_link("http://127.0.0.1:9/wsn") as again:
        assert again is first
    with pytest.raises(ZeroDivisionError), kept_link("http://127.0.0.1:9/wsn") as failed:
        raise ZeroDivisionError
    assert failed is first
    with kept_link("http://127.0.0.1:9/wsn") as other:
        assert other is second

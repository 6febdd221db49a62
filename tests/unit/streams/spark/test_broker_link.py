"""A job's requests to its node: what is waited for, and what is an error at once."""

import http.client

import pytest

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.reading.broker_link import BrokerLink, BrokerRefused, BrokerUnavailable


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
        self.answers, self.asked, self.sock = list(answers), [], None

    def request(self, method, path, body, headers):
        self.asked.append((method, path))
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

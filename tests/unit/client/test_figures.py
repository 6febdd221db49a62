"""The counters of clients, publishers and receivers, and their lines in the log."""

import logging

import pytest

from hpwsn_client.figures import LOG_INTERVAL, Counters, Figures


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_figures_are_what_was_counted() -> None:
    clock = Clock()
    counters = Counters("client", clock)
    sent_at = counters.now
    clock.now += 0.5
    counters.published(3, sent_at)
    clock.now += 2
    counters.published(1, clock.now - 0.25)
    counters.received(7)
    counters.add("failed", 2)
    counters.add("repeated")
    counters.add("refused")
    assert counters.figures() == Figures(
        published=4,
        failed=2,
        requests=2,
        repeated=1,
        seconds=0.75,
        slowest=0.5,
        received=7,
        deliveries=1,
        refused=1,
    )


def test_the_log_has_a_line_a_minute_while_there_is_traffic_and_one_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    counters = Counters("publisher to http://b/wsn", clock)
    with caplog.at_level(logging.INFO, "hpwsn_client.figures"):
        for _ in range(3):
            clock.now += LOG_INTERVAL * 0.4
            counters.published(2, clock.now - 0.01)
        assert [record.getMessage() for record in caplog.records] == [
            "publisher to http://b/wsn: published 6 in 3 requests (mean 10.0 ms, slowest 10.0 ms),"
            " failed 0, requests repeated 0"
        ]
        counters.close()
        assert len(caplog.records) == 1
        counters.received(1)
        counters.close()
    assert caplog.records[1].getMessage().endswith("; received 1 in 1 deliveries, refused 0")


def test_the_line_of_an_object_of_less_than_a_minute_is_for_debugging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "hpwsn_client.figures"):
        counters = Counters("receiver")
        counters.received(1)
        counters.close()
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


def test_an_object_without_traffic_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hpwsn_client.figures"):
        Counters("receiver").close()
    assert not caplog.records

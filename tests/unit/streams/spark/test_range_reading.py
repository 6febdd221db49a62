"""Ranges of offsets: how they are split, and what is said when a part of the log is missing."""

import logging

import pytest

from hpwsn.streams.spark.reading.broker_link import LogState
from hpwsn.streams.spark.reading.range_reading import (
    AnotherLogError,
    DataLossError,
    OffsetRange,
    check_end,
    check_kept,
    split_range,
)
from hpwsn.streams.spark.reading.read_options import ReadOptions, parse_read_options

OPTIONS = ReadOptions("http://node:1/wsn", ("a", "b"), "earliest")


class Log:
    """A node's log with events of the topics at some offsets; counts the requests."""

    def __init__(self, *offsets):
        self._offsets, self.asked = offsets, 0

    def look(self, topics, *, after, upto, limit=0):
        self.asked += 1
        found = [offset for offset in self._offsets if after < offset <= upto]
        return LogState(upto, 1, len(found), found[limit - 1] if 0 < limit <= len(found) else upto)


def split(log, after, upto, parts, key=""):
    return [(one.after, one.upto) for one in split_range(log, ("a",), after, upto, parts, key)]


def test_a_range_is_split_by_the_events_of_the_topics():
    assert split(Log(*range(1, 11)), 0, 10, 3) == [(0, 4), (4, 8), (8, 10)]
    assert split(Log(96, 97, 98, 99), 0, 100, 4) == [(0, 96), (96, 97), (97, 98), (98, 100)]
    busy = Log(96, 97, 98, 99, 101, 102, 103)
    assert split(busy, 0, 99, 2) == [(0, 97), (97, 99)]
    assert busy.asked == 2


def test_parts_without_events_are_left_out_and_a_range_without_events_is_read_as_one():
    assert split(Log(6, 7), 5, 9, 4) == [(5, 6), (6, 9)]
    assert split(Log(1, 2, 3, 4), 0, 9, 3) == [(0, 2), (2, 9)]
    assert split(Log(), 0, 9, 3) == [(0, 9)]
    assert split(Log(), 5, 5, 4) == split(Log(), 5, 5, 4, "key") == []


def test_one_partition_and_a_key_need_no_request():
    log = Log(1, 2, 3)
    assert split_range(log, ("a",), 0, 10, 1) == [OffsetRange(0, 10)]
    assert split_range(log, ("a",), 0, 10, 2, "k") == [
        OffsetRange(0, 10, "k", 0, 2),
        OffsetRange(0, 10, "k", 1, 2),
    ]
    assert log.asked == 0


def test_events_that_retention_has_removed_are_an_error_or_a_warning(caplog):
    check_kept(50, 49, OPTIONS)
    words = (
        r"events of a, b from offset 11 to 49 may be lost.*begins at offset 50.*set failOnDataLoss to false"
    )
    with pytest.raises(DataLossError, match=words):
        check_kept(50, 10, OPTIONS)
    with pytest.raises(DataLossError, match="from offset 11 to 30 may be lost"):
        check_kept(50, 10, OPTIONS, 30)
    with caplog.at_level(logging.WARNING):
        check_kept(50, 10, parse_read_options({"topic": "a", "failOnDataLoss": "false"}, stream=True))
    assert "from offset 11 to 49 may be lost" in caplog.text


def test_a_log_that_ends_before_the_checkpoint_is_another_one():
    check_end(LogState(end=10), 10, OPTIONS)
    with pytest.raises(AnotherLogError, match=r"ends at offset 9, but .* at offset 10.*restore"):
        check_end(LogState(end=9), 10, OPTIONS)

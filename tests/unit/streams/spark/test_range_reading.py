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


def test_a_range_is_split_into_ranges_in_order_and_an_empty_one_into_none():
    assert split_range(0, 10, 3) == [OffsetRange(0, 3), OffsetRange(3, 6), OffsetRange(6, 10)]
    assert split_range(5, 7, 4) == [OffsetRange(5, 6), OffsetRange(6, 7)]
    assert split_range(5, 5, 4) == split_range(5, 5, 4, "key") == []


def test_with_a_key_each_partition_has_the_whole_range():
    assert split_range(0, 10, 2, "k") == [OffsetRange(0, 10, "k", 0, 2), OffsetRange(0, 10, "k", 1, 2)]


def test_events_that_retention_has_removed_are_an_error_or_a_warning(caplog):
    state = LogState(end=100, oldest=50)
    check_kept(state, 49, OPTIONS)
    words = (
        r"events of a, b from offset 11 to 49 may be lost.*begins at offset 50.*set failOnDataLoss to false"
    )
    with pytest.raises(DataLossError, match=words):
        check_kept(state, 10, OPTIONS)
    with caplog.at_level(logging.WARNING):
        check_kept(state, 10, parse_read_options({"topic": "a", "failOnDataLoss": "false"}, stream=True))
    assert "from offset 11 to 49 may be lost" in caplog.text


def test_a_log_that_ends_before_the_checkpoint_is_another_one():
    check_end(LogState(end=10), 10, OPTIONS)
    with pytest.raises(AnotherLogError, match=r"ends at offset 9, but .* at offset 10.*restore"):
        check_end(LogState(end=9), 10, OPTIONS)

"""The rows of a task as requests to the node: how many at once, in which order, under which names."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.publishing import task_publishing
from hpwsn.streams.spark.publishing.rerun import Rerun
from hpwsn.streams.spark.publishing.task_publishing import (
    chunks_of,
    publication_of,
    short_name,
    sorted_batches,
)


def batch(numbers, **columns):
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64()), **columns})


def rows(chunks):
    return [json.loads(line)["n"] for _, lines in chunks for line in lines.splitlines()]


@given(
    st.lists(st.lists(st.integers(0, 99), max_size=20), max_size=8),
    st.integers(1, 20),
    st.integers(12, 200),
)
def test_requests_depend_on_the_rows_and_not_on_the_batches(parts, most_rows, most_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_publishing, "CHUNK_ROWS", most_rows)
        patch.setattr(task_publishing, "CHUNK_BYTES", most_bytes)
        found = list(chunks_of(map(batch, parts)))
        numbers = [n for part in parts for n in part]
        assert found == list(chunks_of([batch(numbers)] if numbers else []))
    assert rows(found) == numbers
    counts = [lines.count(b"\n") for _, lines in found]
    assert [first for first, _ in found] == [sum(counts[:at]) for at in range(len(counts))]
    assert all(count <= most_rows for count in counts)
    assert all(len(lines) <= most_bytes or lines.count(b"\n") == 1 for _, lines in found)


def test_no_rows_are_no_request():
    assert list(chunks_of([])) == []
    assert sorted_batches([], ["n"]) == []


def test_a_sort_is_stable_and_leaves_hidden_columns_out():
    given_ = [batch([3, 1], t=[2, 1], _at=[1, 1]), batch([2, 0], t=[2, 0], _at=[0, 1])]
    (by_time,) = sorted_batches(given_, ["t"])
    assert by_time.to_pydict() == {"n": [0, 1, 3, 2], "t": [0, 1, 2, 2]}
    (by_window,) = sorted_batches(given_, ["_at", "n"])
    assert by_window.to_pydict()["n"] == [2, 0, 1, 3]


def test_a_long_name_of_a_service_is_made_short_and_stays_its_own():
    assert short_name("urn:a") == "urn:a"
    assert len(short_name("u" * 4000)) == 64
    assert short_name("u" * 4000) != short_name("u" * 4001)


def test_without_a_name_a_sink_is_named_like_its_topic():
    found = publication_of({"url": "http://a/wsn", "topic": "t"}, Rerun())
    assert (found.service, found.backbone, found.order) == ("t", "", ())


def test_a_sink_needs_a_topic():
    with pytest.raises(HpwsnError, match="`topic` is missing"):
        publication_of({"url": "http://a/wsn"}, Rerun())

"""Rows as requests to the broker: how many at once, in which order, under which names."""

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.streams.spark import sink


def lines(chunks):
    return [line for _, some in chunks for line in some]


def test_what_fits_is_one_request_in_sparks_order_or_by_time():
    events = [{"n": 2, "t": "b"}, {"n": 1, "t": "a"}]
    assert list(sink._chunks(events, "t")) == [(0, [b'{"n": 2, "t": "b"}', b'{"n": 1, "t": "a"}'])]
    assert list(sink._chunks(events, "t", by_time=True)) == [
        (0, [b'{"n": 1, "t": "a"}', b'{"n": 2, "t": "b"}'])
    ]
    assert list(sink._chunks([], "t")) == []


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 20), st.integers(10, 200), st.randoms())
def test_what_does_not_fit_is_cut_the_same_way_in_whatever_order_it_comes(numbers, rows, size, random):
    before = sink.CHUNK_ROWS, sink.CHUNK_BYTES
    sink.CHUNK_ROWS, sink.CHUNK_BYTES = rows, size
    try:
        events = [{"n": n, "t": n % 3} for n in numbers]
        chunks = list(sink._chunks(events, "t"))
        again = list(sink._chunks(random.sample(events, len(events)), "t"))
    finally:
        sink.CHUNK_ROWS, sink.CHUNK_BYTES = before
    assert sorted(lines(chunks)) == sorted(map(sink._line, events))
    assert all(len(some) <= rows for _, some in chunks)
    assert all(len(some) == 1 or sum(map(len, some)) <= size for _, some in chunks)
    assert [first for first, _ in chunks] == [
        sum(len(some) for _, some in chunks[:n]) for n in range(len(chunks))
    ]
    if len(chunks) > 1:
        assert chunks == again
        moments = [sink.json.loads(line)["t"] for line in lines(chunks)]
        assert moments == sorted(moments)


def test_a_long_name_of_a_service_is_made_short_and_stays_its_own():
    assert sink._short("urn:a") == "urn:a"
    assert len(sink._short("u" * 4000)) == 64
    assert sink._short("u" * 4000) != sink._short("u" * 4001)

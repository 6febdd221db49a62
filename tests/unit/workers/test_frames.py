"""Frames of the link: there and back, split anywhere, garbage, and the bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.workers.frames import VERSION, BadFrame, FrameReader, Kind, encode_frame

Frames = list[tuple[Kind, bytes]]
frames = st.lists(st.tuples(st.sampled_from(Kind), st.binary(max_size=40)), max_size=6)


@given(frames, st.lists(st.integers(0, 300), max_size=6))
def test_frames_come_out_as_they_went_in_wherever_the_stream_is_split(sent: Frames, cuts: list[int]) -> None:
    stream = b"".join(encode_frame(kind, body[:3], body[3:]) for kind, body in sent)
    places = sorted(min(cut, len(stream)) for cut in cuts)
    reader = FrameReader(100)
    found: Frames = []
    for begin, end in zip([0, *places], [*places, len(stream)], strict=True):
        found += reader.feed(stream[begin:end])
    assert found == sent


def test_frames_split_at_every_byte_are_whole() -> None:
    stream = encode_frame(Kind.SEEN, b"1234") + encode_frame(Kind.DRAIN) + encode_frame(Kind.FULL, b"x" * 20)
    for size in range(1, len(stream) + 1):
        reader = FrameReader(20)
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        found = [frame for piece in pieces for frame in reader.feed(piece)]
        assert found == [(Kind.SEEN, b"1234"), (Kind.DRAIN, b""), (Kind.FULL, b"x" * 20)]


def test_a_frame_has_at_most_as_many_bytes_as_are_allowed() -> None:
    assert FrameReader(5).feed(encode_frame(Kind.FULL, b"12345")) == [(Kind.FULL, b"12345")]
    with pytest.raises(BadFrame, match="6 bytes, and 5 are the most"):
        FrameReader(5).feed(encode_frame(Kind.FULL, b"123456")[:6])


def test_another_version_is_refused_with_the_remedy() -> None:
    with pytest.raises(BadFrame, match="restart the node"):
        FrameReader(5).feed(bytes((0, 0, 0, 0, VERSION + 1, Kind.SEEN)))


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_garbage_is_refused_or_waited_for_and_nothing_else(pieces: list[bytes]) -> None:
    reader = FrameReader(1000)
    try:
        for piece in pieces:
            assert all(isinstance(kind, Kind) for kind, _ in reader.feed(piece))
    except BadFrame as wrong:
        assert str(wrong)

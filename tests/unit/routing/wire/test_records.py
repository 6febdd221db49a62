"""Records: frames come out of a stream however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.routing.wire.frames import MAX_RECORD, Records, encode_record


@given(st.lists(st.binary(max_size=30), max_size=6), st.integers(1, 9))
def test_frames_come_out_whole_at_every_split(frames: list[bytes], step: int) -> None:
    stream = b"".join(map(encode_record, frames))
    records = Records()
    out = [frame for at in range(0, len(stream), step) for frame in records.feed(stream[at : at + step])]
    assert out == frames


def test_a_length_beyond_the_longest_frame_is_refused_at_once() -> None:
    assert list(Records().feed(MAX_RECORD.to_bytes(4, "big"))) == []
    with pytest.raises(ValueError, match="at most 1048576 are allowed"):
        list(Records().feed((MAX_RECORD + 1).to_bytes(4, "big")))

"""Frames: what goes in comes out, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.backbone.wire.frames import MARK, FrameId, MalformedFrame, decode_frame, encode_frame
from hpwsn.notification import Notification
from hpwsn_client.wsn.topics.topic_expressions import Topic

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
topics = st.sampled_from(
    [None, *map(Topic.parse, ("A", "A:B.C-d", "{urn:x}A:B", "Straße:京", "{urn:x}A:{urn:y}B"))]
)


@st.composite
def notifications(draw: st.DrawFn) -> Notification:
    content = draw(st.binary(max_size=60))
    start = draw(st.integers(0, len(content)))
    end = draw(st.integers(start, len(content)))
    time = draw(st.integers(0, 2**40)) / 1e6
    return Notification(
        draw(topics), content, start, end, time, draw(st.none() | texts), draw(st.none() | texts)
    )


frames = st.lists(notifications(), min_size=1, max_size=5)


@given(frames)
def test_a_frame_comes_back_as_it_was(sent: list[Notification]) -> None:
    assert decode_frame(encode_frame(sent)) == sent


@given(frames, st.data())
def test_a_frame_that_is_cut_or_longer_is_refused(sent: list[Notification], data: st.DataObject) -> None:
    body = encode_frame(sent)
    with pytest.raises(MalformedFrame):
        decode_frame(body[: data.draw(st.integers(0, len(body) - 1))])
    with pytest.raises(MalformedFrame):
        decode_frame(body + b"x")


@given(st.binary(max_size=80))
def test_garbage_is_malformed_and_nothing_worse(garbage: bytes) -> None:
    for body in (garbage, MARK + garbage, MARK + garbage + b"\n"):
        with pytest.raises(MalformedFrame):
            decode_frame(body)


@pytest.mark.parametrize(
    "line",
    [
        '[["A",1,0,1,0,null]]',
        '[["A",-1,0,0,0,null,null]]',
        '[["A",1,1,0,0,null,null]]',
        '[["A",2,0,0,0,null,null]]',
        '[["A",1,0,1,0.5,null,null]]',
        '[["A",true,0,1,0,null,null]]',
        '[["A",1,0,1,0,5,null]]',
        '[["A B",1,0,1,0,null,null]]',
        '[["A",1,0,1,0,"\\ud800",null]]',
        '[["A",1,0,1,0,"\\u0000",null]]',
        '[["A",1,0,1,99999999999999999999,null,null]]',
        "[[[],1,0,1,0,null,null]]",
        "{}",
        "null",
        "[" * 100_000,
        "[]",
    ],
)
def test_a_line_that_does_not_describe_its_contents_is_malformed(line: str) -> None:
    with pytest.raises(MalformedFrame):
        decode_frame(MARK + line.encode() + b"\nx")


def test_the_form_of_version_1_stays_as_it_is_documented() -> None:
    sent = [
        Notification(Topic.parse("A:B"), b"<a/>", 0, 4, 1.5, "id", None),
        Notification(None, b"<b></b>", 1, 2, 2.0, None, "point"),
    ]
    body = b'hpwsn/1 [["A:B",4,0,4,1500000,"id",null],[null,7,1,2,2000000,null,"point"]]\n<a/><b></b>'
    assert encode_frame(sent) == body
    assert decode_frame(body) == sent


@given(st.text(min_size=1), st.integers(0, 10**17))
def test_a_frame_id_comes_back_as_it_was(source: str, number: int) -> None:
    assert FrameId.parse(str(FrameId(source, number))) == FrameId(source, number)


@pytest.mark.parametrize("text", ["", "x", ":1", "x:", "x:-1", "x:٣", "x:1 ", "x:" + "9" * 19])
def test_anything_else_is_no_frame_id(text: str) -> None:
    with pytest.raises(MalformedFrame, match="frame id"):
        FrameId.parse(text)

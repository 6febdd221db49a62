"""Frames: what goes in comes out, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.backbone.wire.frames import MARK, FrameId, MalformedFrame, decode_frame, encode_frame
from hpwsn.notification import END, Notification, Run, members
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.runs import run_of

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
topics = st.sampled_from(
    [None, *map(Topic.parse, ("A", "A:B.C-d", "{urn:x}A:B", "Straße:京", "{urn:x}A:{urn:y}B"))]
)


parts = st.binary(max_size=30).map(lambda part: part.replace(END, b""))
runs = st.builds(
    lambda topic, payloads, time, message_id, target, routing, before, trace: run_of(
        topic,
        *payloads,
        time=time / 1e6,
        message_id=message_id,
        target=target,
        routing=routing,
        before=before,
        trace=trace,
    ),
    topics,
    st.lists(parts, min_size=1, max_size=3),
    st.integers(0, 2**40),
    st.none() | texts,
    st.none() | texts,
    st.integers(0, 15),
    parts,
    st.sampled_from((None, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")),
)
frames = st.lists(runs, min_size=1, max_size=5)


@given(frames)
def test_a_frame_comes_back_as_it_was(sent: list[Run]) -> None:
    found = decode_frame(encode_frame(members(sent)))
    assert found == list(members(sent))


@given(frames, st.data())
def test_a_frame_that_is_cut_or_longer_is_refused(sent: list[Run], data: st.DataObject) -> None:
    body = encode_frame(members(sent))
    with pytest.raises(MalformedFrame):
        decode_frame(body[: data.draw(st.integers(0, len(body) - 1))])
    with pytest.raises(MalformedFrame):
        decode_frame(body + b"x")


@given(st.binary(max_size=80))
def test_garbage_is_malformed_and_nothing_worse(garbage: bytes) -> None:
    for body in (garbage, MARK + garbage, MARK + garbage + b"\n"):
        with pytest.raises(MalformedFrame):
            decode_frame(body)


def described(line: str, content: bytes = b"x" + MESSAGE_CLOSE) -> bytes:
    """A body with one content; in the line, LENGTH stands for how long it is."""
    return MARK + line.replace("LENGTH", str(len(content))).encode() + b"\n" + content


def test_a_line_that_describes_its_contents_is_read() -> None:
    (notification,) = decode_frame(described('[["A",LENGTH,0,1,0,null,null]]'))
    assert [notification] == [Notification(Topic.parse("A"), b"x" + MESSAGE_CLOSE, 0, 1, 0.0)]


@pytest.mark.parametrize(
    "line",
    [
        '[["A",LENGTH,0,1,0,null]]',
        '[["A",-1,0,0,0,null,null]]',
        '[["A",LENGTH,2,1,0,null,null]]',
        '[["A",LENGTH0,0,1,0,null,null]]',
        '[["A",LENGTH,0,1,0.5,null,null]]',
        '[["A",true,0,1,0,null,null]]',
        '[["A",LENGTH,false,true,0,null,null]]',
        '[["A",LENGTH,0,1,0,5,null]]',
        '[["A B",LENGTH,0,1,0,null,null]]',
        '[["A",LENGTH,0,1,0,"\\ud800",null]]',
        '[["A",LENGTH,0,1,0,"\\u0000",null]]',
        '[["A",LENGTH,0,1,99999999999999999999,null,null]]',
        "[[[],LENGTH,0,1,0,null,null]]",
        '[["A",LENGTH,0,1,0,null,null,16]]',
        '[["A",LENGTH,0,1,0,null,null,0,0]]',
        "{}",
        "null",
        "[" * 100_000,
        "[]",
    ],
)
def test_a_line_that_does_not_describe_its_contents_is_malformed(line: str) -> None:
    with pytest.raises(MalformedFrame):
        decode_frame(described(line))


@pytest.mark.parametrize(
    ("before", "payload", "after"),
    [
        (b"", b"<x>" + END + b"</x>", b""),
        (b"", END, b""),
        (b"<t>" + END + b"</t>", b"<x/>", b""),
        (b"", b"<x/>", END),
    ],
    ids=["in the payload", "alone", "before the payload", "behind it all"],
)
def test_a_content_with_what_ends_the_payloads_of_a_run_is_refused(
    before: bytes, payload: bytes, after: bytes
) -> None:
    content, start = before + payload + MESSAGE_CLOSE + after, len(before)
    end = start + len(payload)
    (notification,) = decode_frame(described(f'[["A",LENGTH,{start},{end},0,null,null]]', content))
    with pytest.raises(ValueError, match="content"):
        Run.of(notification)


@pytest.mark.parametrize("close", [b"\n</wsnt:Message>", b"</wsnt:Message >", b"</w:Message>"])
def test_a_content_of_another_program_may_end_in_another_way(close: bytes) -> None:
    (notification,) = decode_frame(described('[["A",LENGTH,0,4,0,null,null]]', b"<x/>" + close))
    assert notification.payload == b"<x/>"


def test_the_form_of_version_1_stays_as_it_is_documented() -> None:
    sent = [
        Notification(Topic.parse("A:B"), b"<a/>" + MESSAGE_CLOSE, 0, 4, 1.5, "id", None),
        Notification(None, b"<b>c" + MESSAGE_CLOSE, 3, 4, 2.0, None, "point"),
        Notification(Topic.parse("A"), b"<d/>" + MESSAGE_CLOSE, 0, 4, 2.0, None, None, 3),
    ]
    body = (
        b'hpwsn/1 [["A:B",19,0,4,1500000,"id",null],[null,19,3,4,2000000,null,"point"],'
        b'["A",19,0,4,2000000,null,null,3]]\n'
        b"<a/></wsnt:Message><b>c</wsnt:Message><d/></wsnt:Message>"
    )
    assert encode_frame(sent) == body
    assert decode_frame(body) == sent


@given(st.text(min_size=1), st.integers(0, 10**17))
def test_a_frame_id_comes_back_as_it_was(source: str, number: int) -> None:
    assert FrameId.parse(str(FrameId(source, number))) == FrameId(source, number)


@pytest.mark.parametrize("text", ["", "x", ":1", "x:", "x:-1", "x:٣", "x:1 ", "x:" + "9" * 19])
def test_anything_else_is_no_frame_id(text: str) -> None:
    with pytest.raises(MalformedFrame, match="frame id"):
        FrameId.parse(text)

"""A run is its notifications, made when somebody asks for one."""

import pytest
from lxml import etree

from hpwsn.notification import (
    END,
    LONGEST_MARK,
    RELIABLE,
    Notification,
    Run,
    content_size,
    count_of,
    mark_of,
    marked,
    members,
    read_mark,
    unmarked,
)
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.soap.trace_context import LONGEST_TRACESTATE, parse_trace
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.runs import run_of

TOPIC = Topic.parse("a")


def run() -> Run:
    return Run(TOPIC, b"<t/>", b"<x/>\x1e<yy/>\x1e", 2, 5.0, "id", None, RELIABLE)


def test_a_run_is_its_notifications() -> None:
    made = run()
    assert len(made) == 2
    assert list(made) == made.members
    assert made.members[1] == Notification(
        TOPIC, b"<t/><yy/>" + MESSAGE_CLOSE, 4, 9, 5.0, "id", None, RELIABLE
    )
    assert made.first.payload == b"<x/>"


def test_a_single_notification_is_a_run_of_one() -> None:
    single = Notification(TOPIC, b"<t/><x/>" + MESSAGE_CLOSE, 4, 8, 5.0, "id", "point", RELIABLE)
    made = Run.of(single)
    assert (made.size, made.before, made.payloads) == (1, b"<t/>", b"<x/>\x1e")
    assert list(made) == [single]


@pytest.mark.parametrize("content", [b"<x/>", b"<x/></wrong>", b"<x>\x1e</x>" + MESSAGE_CLOSE])
def test_content_that_no_run_can_hold_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="content"):
        Run.of(Notification(TOPIC, content, 0, 4, 5.0))


def test_several_runs_are_counted_and_measured_without_making_notifications() -> None:
    runs = [run(), run_of("b", b"<z/>")]
    assert count_of(runs) == 3
    size = content_size(runs)
    assert all(each._members is None for each in runs)
    assert size == sum(len(each.content) for each in members(runs))


def test_a_run_takes_the_payloads_of_those_that_continue_it() -> None:
    first, second, third = (run_of(TOPIC, payload) for payload in (b"<a/>", b"<b/>", b"<c/>"))
    assert first.first.payload == b"<a/>"
    assert second.continues(first)
    first.extend([second, third])
    assert [each.payload for each in first] == [b"<a/>", b"<b/>", b"<c/>"]
    assert len(first) == 3


@pytest.mark.parametrize(
    "other",
    [
        run_of("a", b"<b/>"),
        run_of(TOPIC, b"<b/>", message_id="id"),
        run_of(TOPIC, b"<b/>", target="point"),
        run_of(TOPIC, b"<b/>", routing=RELIABLE),
        run_of(TOPIC, b"<b/>", before=b"<p/>"),
    ],
    ids=["another topic object", "an id", "a target", "routing", "another beginning"],
)
def test_a_run_that_differs_in_more_than_its_payloads_does_not_continue_another(other: Run) -> None:
    assert not other.continues(run_of(TOPIC, b"<a/>"))


def test_end_is_a_character_that_xml_does_not_allow() -> None:
    assert END == b"\x1e"


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize("state", ["", "congo=t61rcWkgMzE,rojo=a b", "a=" + "-x" * 127 + ",b=" + "x" * 253])
def test_a_mark_is_a_comment_with_the_trace(state: str) -> None:
    trace = parse_trace([TRACE], [state])
    mark = mark_of(trace)
    assert len(state) <= LONGEST_TRACESTATE
    assert read_mark(mark + b"<t/>" + b"x" * LONGEST_MARK) == (trace, len(mark))
    assert etree.fromstring(b"<a>" + mark + b"</a>")[0].text == f"{trace} "


@pytest.mark.parametrize("content", [b"", b"<t/>", b"<!--", b"<!-- a comment -->", b"<!--" + b"0" * 2000])
def test_what_is_not_a_mark_is_content(content: bytes) -> None:
    assert read_mark(content) == (None, 0)


def test_a_marked_notification_is_read_back() -> None:
    plain = Notification(TOPIC, b"<t/><x/>" + MESSAGE_CLOSE, 4, 8, 5.0)
    traced = plain._replace(trace=TRACE)
    assert marked(plain) is plain
    assert unmarked(plain) is plain
    assert marked(traced).payload == b"<x/>"
    assert unmarked(marked(traced)._replace(trace=None)) == traced


def test_runs_of_different_traces_are_not_joined() -> None:
    first, second = run_of(TOPIC, b"<x/>"), run_of(TOPIC, b"<x/>")
    assert second.continues(first)
    second.trace = TRACE
    assert not second.continues(first)
    first.trace = TRACE
    assert second.continues(first)
    assert [each.trace for each in second] == [TRACE]

"""What of a commit is matched together: neighbours on one topic, and nothing that is for a pull point."""

from itertools import pairwise
from unittest.mock import Mock, call

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.processor import Processor, _runs
from hpwsn.notification import Notification
from hpwsn_client.wsn.topics import Topic

TOPICS = (None, Topic.parse("a"), Topic.parse("b"))


@given(st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from((None, None, "p"))), min_size=1))
def test_runs_are_all_of_a_commit_in_order_each_on_one_topic(
    made: list[tuple[Topic | None, str | None]],
) -> None:
    notifications = [Notification(topic, b"", 0, 0, float(n), None, to) for n, (topic, to) in enumerate(made)]
    runs = list(_runs(notifications))
    assert [each for run in runs for each in run] == notifications
    for run in runs:
        assert len({each.topic for each in run}) == 1
        assert len(run) == 1 or all(each.target is None for each in run)
    for one, next_one in pairwise(runs):
        assert one[0].topic != next_one[0].topic or one[0].target or next_one[0].target


def test_a_notification_that_cannot_be_matched_costs_none_of_its_run_a_subscriber(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = [Notification(TOPICS[1], bytes([n]), 0, 1, 0.0) for n in range(3)]
    audience, delivery = Mock(), Mock()
    audience.match_alike.return_value = None
    audience.match_each.side_effect = lambda some: [
        ["everyone", *([number] if number else [])] if number != 1 else 1 / 0
        for number in (each.payload[0] for each in some)
    ]
    others = {name: Mock() for name in ("tree", "recent", "pull_points", "readers")}
    Processor(audience=audience, delivery=delivery, **others).process(5, run)
    offered = [call("everyone", range(5, 6)), call("everyone", range(7, 8)), call(2, range(7, 8))]
    assert delivery.offer.call_args_list == offered
    assert "notification 6 could not be matched" in caplog.text
    assert delivery.head == 7

"""What of a commit is matched together: neighbours on one topic, and nothing that is for a pull point."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.broker.processor import _runs
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

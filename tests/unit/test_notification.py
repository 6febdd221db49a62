"""Runs and batches are sequences of notifications, made when somebody asks for one."""

from hpwsn.broker.delivery.processor import _runs
from hpwsn.notification import RELIABLE, Batch, Notification, Run, content_size, parts_of
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic

TOPIC = Topic.parse("a")


def run() -> Run:
    return Run(TOPIC, b"<t/>", b"<x/>\x1e<yy/>\x1e", 2, 5.0, "id", RELIABLE)


def test_a_run_is_its_notifications() -> None:
    made = run()
    assert len(made) == 2
    assert list(made) == [made[0], made[-1]] == made[:]
    assert made[1] == Notification(TOPIC, b"<t/><yy/>" + MESSAGE_CLOSE, 4, 9, 5.0, "id", None, RELIABLE)
    assert made[0].payload == b"<x/>"


def test_a_batch_is_its_parts_in_order() -> None:
    single = Notification(None, b"<z/>", 0, 4, 6.0)
    batch = Batch([[single], run(), [single, single]])
    assert (len(batch), len(list(batch))) == (5, 5)
    assert [batch[0], *run(), single, single] == list(batch)
    assert content_size(batch) == sum(len(each.content) for each in batch)


def test_nobody_makes_notifications_to_find_who_wants_them() -> None:
    made = run()
    assert list(_runs(made)) == [made]
    assert parts_of(made) == (made,)
    assert len(made) == 2
    assert made._made is None

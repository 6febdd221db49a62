"""What comes in one turn of the loop goes out together, and everyone is told what became of it."""

import asyncio
from collections.abc import Sequence

from hpwsn.broker.admission import batching as intake
from hpwsn.broker.admission.batching import Intake
from hpwsn.notification import Notification, Run
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE


def notification(number: int) -> Notification:
    return Notification(None, b"%d" % number, 0, 1, 0.0)


class Backbone:
    """Keeps each send until it is told how it ends."""

    def __init__(self) -> None:
        self.sent: list[list[bytes]] = []
        self.outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def send(self, notifications: Sequence[Notification]) -> bool:
        self.sent.append([each.content for each in notifications])
        return await self.outcome


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_comes_in_one_turn_is_one_send_in_order() -> None:
    backbone = Backbone()
    told: list[tuple[int, bool]] = []
    entry = Intake(backbone.send)
    for number in range(3):
        entry.put([notification(number)], 1, lambda stored, number=number: told.append((number, stored)))
    assert backbone.sent == []
    await turns()
    assert backbone.sent == [[b"0", b"1", b"2"]]
    assert told == []
    backbone.outcome.set_result(True)
    await turns()
    assert told == [(0, True), (1, True), (2, True)]


async def test_runs_keep_their_place_among_the_others() -> None:
    backbone = Backbone()
    entry = Intake(backbone.send)
    run = Run(None, b"", b"<a/>\x1e<b/>\x1e", 2, 0.0)
    taken: list[Sequence[Notification]] = [[notification(1)], [notification(2)], run, [notification(3)]]
    for each in taken:
        entry.put(each, 1, lambda stored: None)
    await turns()
    close = MESSAGE_CLOSE
    assert backbone.sent == [[b"1", b"2", b"<a/>" + close, b"<b/>" + close, b"3"]]
    assert len(taken[0]) == 1, "the caller's list is its own"
    backbone.outcome.set_result(True)
    await turns()


async def test_what_comes_later_does_not_wait_for_the_send_before() -> None:
    backbone = Backbone()
    entry = Intake(backbone.send)
    for number in range(2):
        entry.put([notification(number)], 1, lambda stored: None)
        await turns()
    assert backbone.sent == [[b"0"], [b"1"]]
    backbone.outcome.set_result(True)
    await turns()


async def test_a_failure_is_told_to_all_of_a_send() -> None:
    for failure in (False, RuntimeError("no disk")):
        backbone = Backbone()
        told: list[bool] = []
        entry = Intake(backbone.send)
        entry.put([notification(1)], 1, told.append)
        entry.put([notification(2)], 1, told.append)
        if isinstance(failure, Exception):
            backbone.outcome.set_exception(failure)
        else:
            backbone.outcome.set_result(failure)
        await turns()
        assert told == [False, False]


async def test_a_send_goes_at_once_when_it_is_large() -> None:
    backbone = Backbone()
    entry = Intake(backbone.send)
    entry.put([notification(1)], intake.MOST_BYTES, lambda stored: None)
    entry.put([notification(2)] * intake.MOST, 1, lambda stored: None)
    entry.put([notification(3)], 1, lambda stored: None)
    await turns()
    assert [len(sent) for sent in backbone.sent] == [1, intake.MOST, 1]
    backbone.outcome.set_result(True)
    await turns()

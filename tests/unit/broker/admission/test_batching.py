"""What comes in one turn of the loop goes out together, and everyone is told what became of it."""

import asyncio
from collections.abc import Sequence

from hpwsn.broker.admission import batching
from hpwsn.broker.admission.batching import Batching
from hpwsn.notification import Run, members
from tests.runs import run_of


def notification(number: int) -> Run:
    return run_of(None, b"%d" % number, message_id=f"{number}")


class Backbone:
    """Keeps each send until it is told how it ends."""

    def __init__(self) -> None:
        self.sent: list[list[bytes]] = []
        self.runs = 0
        self.outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def send(self, runs: Sequence[Run]) -> bool:
        self.sent.append([each.payload for each in members(runs)])
        self.runs = len(runs)
        return await self.outcome


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_comes_in_one_turn_is_one_send_in_order() -> None:
    backbone = Backbone()
    told: list[tuple[int, bool]] = []
    entry = Batching(backbone.send)
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
    entry = Batching(backbone.send)
    for each in (notification(1), notification(2), run_of(None, b"<a/>", b"<b/>"), notification(3)):
        entry.put([each], 1, lambda stored: None)
    await turns()
    assert backbone.sent == [[b"1", b"2", b"<a/>", b"<b/>", b"3"]]
    backbone.outcome.set_result(True)
    await turns()


async def test_runs_in_a_row_that_differ_in_their_payloads_only_become_one() -> None:
    backbone = Backbone()
    entry = Batching(backbone.send)
    for payload in (b"<a/>", b"<b/>", b"<c/>"):
        entry.put([run_of(None, payload)], 1, lambda stored: None)
    entry.put([notification(4), run_of(None, b"<d/>"), run_of(None, b"<e/>")], 1, lambda stored: None)
    await turns()
    assert backbone.sent == [[b"<a/>", b"<b/>", b"<c/>", b"4", b"<d/>", b"<e/>"]]
    assert backbone.runs == 3
    backbone.outcome.set_result(True)
    await turns()


async def test_what_comes_later_does_not_wait_for_the_send_before() -> None:
    backbone = Backbone()
    entry = Batching(backbone.send)
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
        entry = Batching(backbone.send)
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
    entry = Batching(backbone.send)
    entry.put([notification(1)], batching.MOST_BYTES, lambda stored: None)
    entry.put([notification(2)] * batching.MOST, 1, lambda stored: None)
    entry.put([notification(3)], 1, lambda stored: None)
    await turns()
    assert [len(sent) for sent in backbone.sent] == [1, batching.MOST, 1]
    backbone.outcome.set_result(True)
    await turns()


async def test_runs_are_joined_up_to_one_row_of_the_log() -> None:
    backbone = Backbone()
    entry = Batching(backbone.send)
    for _ in range(5):
        entry.put([run_of(None, *[b"<a/>"] * 50)], 1, lambda stored: None)
    await turns()
    assert len(backbone.sent[0]) == 250
    assert backbone.runs == 3
    backbone.outcome.set_result(True)
    await turns()

"""The live hub: one encoding for all readers, nothing for nobody, and no gap without a reset."""

import json
from typing import Any

import pytest

from hpwsn.monitoring import live
from hpwsn.monitoring.live import BEAT, KINDS, MEMORY, MEMORY_BYTES, STALLED, Frame, LiveHub, Reader


class Client:
    """A connection that remembers what was written to it."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.slow = self.gone = self.aborted = False

    def write(self, frame: Frame) -> bool:
        if self.gone:
            raise ConnectionResetError
        if not self.slow:
            self.frames.append(frame)
        return not self.slow

    def closed(self) -> bool:
        return self.gone

    def abort(self) -> None:
        self.aborted = True

    def events(self) -> list[tuple[str, Any]]:
        """The kind and the data of each message."""
        found = []
        for frame in self.frames:
            lines = frame.plain.decode().splitlines()
            fields = dict(line.split(": ", 1) for line in lines if ": " in line)
            if "event" in fields:
                found.append((fields["event"], json.loads(fields["data"])))
        return found

    @property
    def last_id(self) -> str:
        return next(line for line in self.frames[-1].plain.decode().splitlines()).removeprefix("id: ")


class Hub(LiveHub):
    """A hub whose clock stands, and whose sources count their calls."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.made = dict.fromkeys(KINDS, 0)
        super().__init__(lambda: self.now)
        for kind in KINDS:
            self.source(kind, lambda kind=kind: self._content(kind))

    def _content(self, kind: str) -> dict[str, Any]:
        self.made[kind] += 1
        return {"n": self.made[kind], "name": "ü"}

    def second(self) -> None:
        self.now += 1
        self.tick()

    def enter(self, *kinds: str, last_id: str | None = None) -> tuple[Client, Reader]:
        client = Client()
        return client, self.join(kinds or KINDS, client, last_id)


@pytest.fixture
async def hub() -> Hub:
    return Hub()


async def test_nothing_is_made_while_nobody_reads(hub: Hub) -> None:
    hub.changed("alerts")
    hub.second()
    assert not any(hub.made.values())
    client, _ = hub.enter("alerts")
    hub.second()
    assert hub.made == {**dict.fromkeys(KINDS, 0), "alerts": 1}
    assert client.events() == [("alerts", {"n": 1, "name": "ü"})]


async def test_ten_readers_get_the_same_bytes_which_are_made_once(hub: Hub) -> None:
    clients = [hub.enter()[0] for _ in range(10)]
    for _ in range(3):
        hub.changed("topics")
        hub.changed("topics")
        hub.second()
    assert hub.made == {"status": 3, "topics": 3, "topology": 1, "subscriptions": 1, "alerts": 1}
    assert all(
        mine is theirs
        for client in clients
        for mine, theirs in zip(client.frames, clients[0].frames, strict=True)
    )


async def test_a_frame_is_a_chunk_of_the_same_event(hub: Hub) -> None:
    client, _ = hub.enter("status")
    hub.second()
    (frame,) = client.frames
    size, _, rest = frame.chunk.partition(b"\r\n")
    assert int(size, 16) == len(frame.plain)
    assert rest == frame.plain + b"\r\n"
    assert frame.plain.endswith('event: status\ndata: {"n":1,"name":"ü"}\n\n'.encode())


async def test_status_comes_each_second_and_the_rest_when_it_changes(hub: Hub) -> None:
    client, _ = hub.enter()
    hub.second()
    client.frames.clear()
    hub.second()
    hub.changed("subscriptions")
    hub.second()
    assert [kind for kind, _ in client.events()] == ["status", "status", "subscriptions"]


async def test_a_new_reader_gets_the_newest_of_each_kind_at_once(hub: Hub) -> None:
    hub.enter()
    for _ in range(3):
        hub.second()
    client, _ = hub.enter("alerts", "status")
    assert client.events() == [("alerts", {"n": 1, "name": "ü"}), ("status", {"n": 3, "name": "ü"})]
    assert hub.made["status"] == 3


async def test_the_first_reader_after_a_while_gets_no_old_message(hub: Hub) -> None:
    _, reader = hub.enter()
    hub.second()
    hub.leave(reader)
    hub.changed("topics")
    for _ in range(100):
        hub.second()
    client, _ = hub.enter("status", "topics", "alerts")
    assert sorted(client.events(), key=lambda event: event[0]) == [
        ("alerts", {"n": 1, "name": "ü"}),
        ("status", {"n": 2, "name": "ü"}),
        ("topics", {"n": 2, "name": "ü"}),
    ]
    assert hub.made["status"] == 2


async def test_a_reader_that_comes_back_gets_what_it_missed_and_no_more(hub: Hub) -> None:
    hub.enter()
    client, reader = hub.enter("status", "alerts")
    hub.second()
    hub.leave(reader)
    hub.changed("topics")
    hub.second()
    hub.changed("alerts")
    hub.second()
    again, _ = hub.enter("status", "alerts", last_id=client.last_id)
    assert [(kind, data["n"]) for kind, data in again.events()] == [
        ("status", 2),
        ("status", 3),
        ("alerts", 2),
    ]


async def test_a_change_while_nobody_read_reaches_the_one_that_comes_back(hub: Hub) -> None:
    client, reader = hub.enter("alerts")
    hub.second()
    hub.leave(reader)
    hub.changed("alerts")
    hub.second()
    again, _ = hub.enter("alerts", last_id=client.last_id)
    hub.second()
    assert [(kind, data["n"]) for kind, data in again.events()] == [("alerts", 2)]


@pytest.mark.parametrize(("missed", "reset"), [(MEMORY, False), (MEMORY + 1, True)])
async def test_the_memory_ends_at_its_limit_and_then_a_reset_comes(
    hub: Hub, missed: int, reset: bool
) -> None:
    hub.enter()
    client, reader = hub.enter("status")
    hub.second()
    hub.leave(reader)
    for _ in range(missed):
        hub.second()
    again, _ = hub.enter("status", last_id=client.last_id)
    kinds = [kind for kind, _ in again.events()]
    assert kinds == (["reset", "status"] if reset else ["status"] * MEMORY)
    third, _ = hub.enter("status", last_id=again.last_id)
    assert third.events() == []


async def test_the_memory_of_a_kind_does_not_push_out_another(hub: Hub) -> None:
    hub.enter()
    client, reader = hub.enter("alerts")
    hub.second()
    hub.leave(reader)
    for _ in range(2 * MEMORY):
        hub.second()
    again, _ = hub.enter("alerts", last_id=client.last_id)
    assert again.events() == []


async def test_the_bytes_of_the_memory_are_bounded(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.source("topics", lambda: {"text": "x" * (MEMORY_BYTES // 2)})
    client, _ = hub.enter("topics")
    for _ in range(4):
        hub.changed("topics")
        hub.second()
    assert len(client.frames) == 4
    fresh, _ = hub.enter("topics", last_id=client.last_id.split("-")[0] + "-1")
    assert [kind for kind, _ in fresh.events()] == ["reset", "topics"]


@pytest.mark.parametrize("last_id", ["", "x", "0", "deadbeef-1", "-1", "1-", "ü-²", "9" * 100])
async def test_an_id_of_another_life_is_answered_with_a_reset(hub: Hub, last_id: str) -> None:
    hub.enter()
    hub.second()
    client, _ = hub.enter("status", last_id=last_id)
    assert [kind for kind, _ in client.events()] == ["reset", "status"]
    assert "read" in client.events()[0][1]["why"]


async def test_an_id_that_is_yet_to_come_is_answered_with_a_reset(hub: Hub) -> None:
    client, _ = hub.enter("status")
    hub.second()
    life = client.last_id.split("-")[0]
    ahead, _ = hub.enter("status", last_id=f"{life}-2")
    assert [kind for kind, _ in ahead.events()] == ["reset", "status"]
    for odd in (f"{life}-²", f"{life}-{'9' * 30}", f"{life}-"):
        client, _ = hub.enter("status", last_id=odd)
        assert client.events()[0][0] == "reset"


async def test_a_slow_reader_loses_messages_gets_a_reset_and_holds_up_nobody(hub: Hub) -> None:
    slow, _ = hub.enter("status")
    quick, _ = hub.enter("status")
    hub.second()
    slow.slow = True
    hub.second()
    hub.second()
    slow.slow = False
    hub.second()
    assert [(kind, data.get("n")) for kind, data in slow.events()] == [
        ("status", 1),
        ("reset", None),
        ("status", 3),
        ("status", 4),
    ]
    assert [data["n"] for _, data in quick.events()] == [1, 2, 3, 4]


async def test_a_reader_that_takes_nothing_for_long_is_disconnected(hub: Hub) -> None:
    client, reader = hub.enter("status")
    client.slow = True
    hub.second()
    for _ in range(int(STALLED) - 1):
        hub.second()
    assert not client.aborted
    hub.second()
    assert client.aborted
    assert reader.left.done()
    assert len(hub) == 0


async def test_a_silent_stream_has_beats(hub: Hub) -> None:
    client, _ = hub.enter("alerts")
    hub.second()
    client.frames.clear()
    for _ in range(int(BEAT) - 1):
        hub.second()
    assert client.frames == []
    hub.second()
    assert [frame.plain for frame in client.frames] == [b":\n\n"]


async def test_a_reader_that_is_gone_is_forgotten(hub: Hub) -> None:
    client, reader = hub.enter()
    client.gone = True
    hub.second()
    assert len(hub) == 0
    assert reader.left.done()
    assert not any(hub.made.values())


async def test_the_end_of_the_hub_ends_every_stream(hub: Hub) -> None:
    _, reader = hub.enter()
    hub.close()
    assert reader.left.done()
    assert hub.enter()[1].left.done()
    assert len(hub) == 0


async def test_a_source_that_fails_is_logged_and_the_others_are_sent(
    hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    hub.source("topics", fail)
    client, _ = hub.enter()
    hub.second()
    assert [kind for kind, _ in client.events()] == ["status", "topology", "subscriptions", "alerts"]
    assert "topics failed" in caplog.text


async def test_a_kind_that_nobody_knows_has_no_source(hub: Hub) -> None:
    with pytest.raises(ValueError, match="weather"):
        hub.source("weather", dict)
    assert live.RESET not in KINDS


async def test_what_is_told_does_not_wait_for_the_tick(hub: Hub) -> None:
    client, _ = hub.enter("status", "topology")
    other, _ = hub.enter("status")
    hub.second()
    client.frames.clear()
    other.frames.clear()
    hub.tell("topology")
    assert client.events() == [("topology", {"n": 2, "name": "ü"})]
    hub.second()
    assert [kind for kind, _ in client.events()] == ["topology", "status"]
    assert [kind for kind, _ in other.events()] == ["status"]


async def test_what_is_told_to_nobody_is_kept_for_the_next_reader(hub: Hub) -> None:
    hub.tell("topology")
    assert not any(hub.made.values())
    client, _ = hub.enter("topology")
    hub.second()
    assert client.events() == [("topology", {"n": 1, "name": "ü"})]

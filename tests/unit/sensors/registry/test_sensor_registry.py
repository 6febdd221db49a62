"""The registry: stored before told, replaced by id, found by kind, and bounded."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.errors import JournalUnavailable
from hpwsn.journal import Journal
from hpwsn.sensors.physical.physical_sensor import PhysicalSensor, SensorRefused, parse_sensor
from hpwsn.sensors.physical.selection import Area, Selection
from hpwsn.sensors.registry.sensor_registry import KIND, RegistryFull, SensorRegistry


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def sensor(name: str, kind: str = "weather", unit: str = "degC", **more: Any) -> PhysicalSensor:
    return parse_sensor({"id": name, "kind": kind, "quantities": {"t": {"unit": unit}}, **more})


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = Journal(tmp_path / "journal.db", reserve=1 << 16)
    await journal.open()
    yield journal
    await journal.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(journal: Journal, clock: Clock) -> SensorRegistry:
    return SensorRegistry(journal, limit=3, clock=clock)


@pytest.fixture
def reopened(journal: Journal, tmp_path: Path, clock: Clock) -> Callable[[], Any]:
    """The registry as a restart finds it."""

    async def reopen() -> SensorRegistry:
        await journal.close()
        recovered = await journal.open()
        found = SensorRegistry(journal, limit=3, clock=clock)
        found.restore(recovered.documents.get(KIND, {}))
        return found

    return reopen


async def test_a_registered_sensor_is_known_and_survives_a_restart(
    registry: SensorRegistry, reopened: Any
) -> None:
    full = sensor(
        "s1",
        place={"longitude": 116.4, "latitude": 39.9},
        tags=["roof", "北京"],
        interval=1,
        owner="met office",
        gateway="g1",
        on_demand=True,
    )
    await registry.put([full, sensor("s2")])
    assert (registry.get("s1"), len(registry), list(registry.ids())) == (full, 2, ["s1", "s2"])
    again = await reopened()
    assert (again.get("s1"), len(again)) == (full, 2)


async def test_a_second_registration_replaces_the_first_also_with_another_kind(
    registry: SensorRegistry, reopened: Any
) -> None:
    await registry.put([sensor("s1", kind="weather"), sensor("s2", kind="weather")])
    assert list(registry.ids("weather")) == ["s1", "s2"]
    await registry.put([sensor("s1", kind="seismic")])
    assert (list(registry.ids("weather")), list(registry.ids("seismic"))) == (["s2"], ["s1"])
    assert [each.id for each in registry.select(Selection(kind="seismic"))] == ["s1"]
    assert len(registry) == 2
    found = (await reopened()).get("s1")
    assert found is not None
    assert found.kind == "seismic"


async def test_of_two_registrations_of_one_id_at_once_the_later_one_counts(registry: SensorRegistry) -> None:
    await registry.put([sensor("s1", unit="degC"), sensor("s1", unit="K")])
    found = registry.get("s1")
    assert found is not None
    assert found.quantities["t"].unit == "K"


async def test_a_removed_sensor_is_gone_for_good(registry: SensorRegistry, reopened: Any) -> None:
    await registry.put([sensor("s1"), sensor("s2")])
    assert list(registry.ids()) == ["s1", "s2"]
    assert await registry.remove("s1")
    assert not await registry.remove("s1")
    assert (registry.get("s1"), list(registry.ids()), list(registry.ids("weather"))) == (None, ["s2"], ["s2"])
    assert [each.id for each in await reopened()] == ["s2"]


async def test_sensors_are_selected_by_kind_tags_and_area(registry: SensorRegistry) -> None:
    await registry.put(
        [
            sensor("s1", tags=["roof", "new"], place={"longitude": 10, "latitude": 50}),
            sensor("s2", tags=["roof"]),
            sensor("s3", kind="seismic", tags=["roof"], place={"longitude": 10, "latitude": 50}),
        ]
    )

    def ids(**selection: Any) -> list[str]:
        return [each.id for each in registry.select(Selection(**selection))]

    assert ids() == ["s1", "s2", "s3"]
    assert ids(kind="weather", tags=("roof",)) == ["s1", "s2"]
    assert ids(tags=("new", "roof")) == ["s1"]
    assert ids(area=Area(9, 49, 11, 51)) == ["s1", "s3"]
    assert ids(kind="unheard") == []


async def test_the_limit_counts_new_sensors_only_and_a_request_beyond_it_changes_nothing(
    registry: SensorRegistry,
) -> None:
    await registry.put([sensor("s1"), sensor("s2"), sensor("s3")])
    await registry.put([sensor("s3", unit="K")])
    with pytest.raises(RegistryFull, match=r"sensors\.limit allows \(3\)"):
        await registry.put([sensor("s2", unit="K"), sensor("s4")])
    found = registry.get("s2")
    assert found is not None
    assert (found.quantities["t"].unit, len(registry)) == ("degC", 3)
    await registry.remove("s1")
    await registry.put([sensor("s4")])


async def test_an_unknown_unit_is_refused_by_sensor_and_quantity_and_nothing_is_registered(
    registry: SensorRegistry,
) -> None:
    with pytest.raises(SensorRefused, match="sensor 's2', quantity 't': the unit 'parsnips' is unknown"):
        await registry.put([sensor("s1"), sensor("s2", unit="parsnips")])
    assert len(registry) == 0


async def test_listeners_hear_of_each_change_once_it_is_stored(
    registry: SensorRegistry, journal: Journal
) -> None:
    heard: list[tuple[str, str | None, bool]] = []
    registry.changed.add(
        lambda name, new: heard.append(
            (name, new and new.kind, (registry.get(name) is None) == (new is None))
        )
    )
    await asyncio.gather(
        registry.put([sensor("s1"), sensor("s2")]),
        registry.put([sensor("s1", "seismic")]),
        registry.remove("s2"),
    )
    assert heard == [
        ("s1", "weather", True),
        ("s2", "weather", True),
        ("s1", "seismic", True),
        ("s2", None, True),
    ]


async def test_a_sensor_that_cannot_be_stored_is_not_registered(
    registry: SensorRegistry, journal: Journal
) -> None:
    await registry.put([sensor("s1")])
    heard: list[str] = []
    registry.changed.add(lambda name, _: heard.append(name))
    await journal.close()
    with pytest.raises(JournalUnavailable):
        await registry.put([sensor("s2")])
    with pytest.raises(JournalUnavailable):
        await registry.remove("s1")
    assert ([each.id for each in registry], heard) == (["s1"], [])
    await journal.open()


async def test_a_cancelled_caller_leaves_memory_and_journal_the_same(
    registry: SensorRegistry, reopened: Any
) -> None:
    caller = asyncio.create_task(registry.put([sensor("s1")]))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    await registry.put([sensor("s2")])
    assert {each.id for each in registry} == {"s1", "s2"}
    assert {each.id for each in await reopened()} == {"s1", "s2"}


def test_a_stored_sensor_that_is_not_valid_is_left_out_and_logged(
    registry: SensorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    good = b'{"id": "s1", "kind": "weather", "quantities": {"t": {"unit": "K"}}}'
    registry.restore({"s1": good, "s2": b"{}", "s3": b"not JSON"})
    assert [each.id for each in registry] == ["s1"]
    assert ["s2" in caplog.messages[0], "s3" in caplog.messages[1]] == [True, True]


async def test_a_description_has_the_registration_and_the_state(
    registry: SensorRegistry, clock: Clock
) -> None:
    await registry.put([sensor("s1", interval=10)])
    (found,) = registry
    assert registry.describe(found) == {
        "id": "s1",
        "kind": "weather",
        "quantities": {"t": {"unit": "degC"}},
        "tags": [],
        "interval": 10.0,
        "state": {"last_seen": None, "interval": None, "silent": False},
        "wanted": None,
    }
    for clock.now in (1000.0, 1004.0, 1008.0):
        registry.heard("s1", clock.now)
    clock.now = 1039.0
    assert registry.describe(found)["state"] == {
        "last_seen": "1970-01-01T00:16:48.000+00:00",
        "interval": 4.0,
        "silent": True,
    }


async def test_a_sensor_that_is_told_to_stop_is_not_silent(registry: SensorRegistry, clock: Clock) -> None:
    await registry.put([sensor("s1", interval=1, on_demand=True)])
    (found,) = registry
    clock.now += 60
    registry.wanted = {"s1": True}.get
    assert (registry.describe(found)["wanted"], registry.describe(found)["state"]["silent"]) == (True, True)
    registry.wanted = {"s1": False}.get
    assert (registry.describe(found)["wanted"], registry.describe(found)["state"]["silent"]) == (False, False)


async def test_the_last_report_before_a_restart_is_kept_until_the_next_one(
    registry: SensorRegistry, clock: Clock
) -> None:
    await registry.put([sensor("s1")])
    (found,) = registry
    registry.reported_before("s1", 500.0)
    registry.reported_before("unknown", 500.0)
    assert registry.describe(found)["state"]["last_seen"] == "1970-01-01T00:08:20.000+00:00"
    registry.heard("s1", 1000.0)
    registry.heard("unknown", 1000.0)
    registry.reported_before("s1", 500.0)
    state = registry.describe(found)["state"]
    assert (state["last_seen"], state["interval"]) == ("1970-01-01T00:16:40.000+00:00", None)


async def test_a_sensor_that_is_registered_again_keeps_its_reports(
    registry: SensorRegistry, clock: Clock
) -> None:
    await registry.put([sensor("s1")])
    registry.heard("s1", 1000.0)
    await registry.put([sensor("s1", kind="seismic")])
    (found,) = registry
    assert registry.describe(found)["state"]["last_seen"] is not None


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["s1", "s2", "s3"]),
        st.none() | st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from("xyz"), unique=True)),
    ),
    max_size=12,
)


@given(CHANGES, st.none() | st.sampled_from("abc"), st.lists(st.sampled_from("xyz"), max_size=2))
def test_whatever_came_and_went_a_selection_finds_what_a_look_at_all_sensors_finds(
    changes: list[tuple[str, tuple[str, list[str]] | None]], kind: str | None, tags: list[str]
) -> None:
    registry = SensorRegistry(InMemory(), limit=3, clock=Clock())  # type: ignore[arg-type]
    selection = Selection(kind=kind, tags=tuple(tags))

    async def change() -> None:
        for name, now in changes:
            if now is None:
                await registry.remove(name)
            else:
                await registry.put([sensor(name, now[0], tags=now[1])])

    asyncio.run(change())
    wanted = selection.of(registry)
    assert sorted(registry.select(selection), key=str) == sorted(wanted, key=str)
    among = registry.among(selection)
    for one in ([Selection(kind=kind)] if kind else []) + [Selection(tags=(tag,)) for tag in tags]:
        assert len(among) <= len(one.of(registry))
    for each in "abc":
        assert list(registry.ids(each)) == sorted(found.id for found in registry if found.kind == each)


class InMemory:
    """A journal that stores nothing."""

    async def put_documents(self, kind: str, documents: dict[str, bytes]) -> None:
        """Nothing to do."""

    async def delete_documents(self, kind: str, keys: list[str]) -> None:
        """Nothing to do."""

"""Definitions: stored before they are known, all or none, limited, and there again after a restart."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hpwsn.errors import JournalUnavailable
from hpwsn.journal import Journal
from hpwsn.sensors.virtual.definitions import KIND, Definitions, TooManyDefinitions
from tests.unit.sensors.virtual.virtual_field import template


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


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
def definitions(journal: Journal, clock: Clock) -> Definitions:
    return Definitions(journal, limit=3, clock=clock)


async def reopened(journal: Journal, clock: Clock) -> Definitions:
    """The definitions as a restart finds them."""
    await journal.close()
    recovered = await journal.open()
    found = Definitions(journal, limit=3, clock=clock)
    found.restore(recovered.documents.get(KIND, {}))
    return found


FULL = {
    "kind": "weather",
    "tags": ["北京"],
    "area": [1, 2, 3, 4],
    "combine": "last",
    "every": 2.5,
    "quorum": 2,
    "silence": "hold",
    "outliers": 3,
    "bands": [{"name": "warm", "low": 24}],
    "hysteresis": 0.5,
    "text": "{name} é",
    "service": 'uri = "x"',
}


async def test_a_definition_and_when_it_was_made_survive_a_restart(
    definitions: Definitions, journal: Journal, clock: Clock
) -> None:
    hall, roof = template("hall", **FULL), template("roof")
    await definitions.put([hall])
    clock.now = 2000.0
    await definitions.put([roof, hall])
    for found in (definitions, await reopened(journal, clock)):
        assert (found.get("hall"), found.get("roof"), len(found)) == (hall, roof, 2)
        assert (found.created("hall"), found.created("roof")) == (1000.0, 2000.0)
        assert sorted(each.name for each in found) == ["hall", "roof"]


async def test_a_second_definition_replaces_the_first(
    definitions: Definitions, journal: Journal, clock: Clock
) -> None:
    await definitions.put([template("hall")])
    await definitions.put([template("hall", combine="max")])
    for found in (definitions, await reopened(journal, clock)):
        assert (found.get("hall"), len(found)) == (template("hall", combine="max"), 1)


async def test_a_name_that_was_removed_and_is_defined_again_is_new(
    definitions: Definitions, journal: Journal, clock: Clock
) -> None:
    await definitions.put([template("hall")])
    await definitions.remove("hall")
    assert (definitions.get("hall"), len(definitions)) == (None, 0)
    clock.now = 3000.0
    await definitions.put([template("hall")])
    assert definitions.created("hall") == 3000.0
    await definitions.remove("hall")
    assert len(await reopened(journal, clock)) == 0


async def test_as_many_as_the_limit_are_accepted_and_beyond_none_of_the_request(
    definitions: Definitions,
) -> None:
    await definitions.put([template("a"), template("b"), template("a")])
    with pytest.raises(TooManyDefinitions, match=r"sensors.virtual_limit allows \(3\)"):
        await definitions.put([template("c"), template("d")])
    assert sorted(each.name for each in definitions) == ["a", "b"]
    await definitions.put([template("c")])
    await definitions.put([template(name, combine="sum") for name in "abc"])
    with pytest.raises(TooManyDefinitions):
        await definitions.put([template("d")])
    await definitions.remove("c")
    await definitions.put([template("d")])
    assert len(definitions) == 3


async def test_what_cannot_be_stored_is_not_known(definitions: Definitions, journal: Journal) -> None:
    await definitions.put([template("hall")])
    await journal.close()
    with pytest.raises(JournalUnavailable):
        await definitions.put([template("hall", combine="max"), template("roof")])
    with pytest.raises(JournalUnavailable):
        await definitions.remove("hall")
    assert (definitions.get("hall"), definitions.get("roof")) == (template("hall"), None)
    await journal.open()


@pytest.mark.parametrize(
    "document",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"created": 1}',
        b'{"created": "x", "quantity": "t", "every": 1}',
        b'{"created": null, "quantity": "t", "every": 1}',
        b'{"created": 1, "quantity": "t", "every": 0}',
        b"\xff",
    ],
)
async def test_a_stored_one_that_is_not_valid_is_left_out_and_told(
    document: bytes, definitions: Definitions, caplog: pytest.LogCaptureFixture
) -> None:
    good = b'{"created": 1, "quantity": "t", "every": 1}'
    with caplog.at_level(logging.ERROR):
        definitions.restore({"bad": document, "good": good})
    assert [each.name for each in definitions] == ["good"]
    assert "the stored virtual sensor bad is not valid and is left out" in caplog.text

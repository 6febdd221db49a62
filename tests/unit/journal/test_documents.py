"""Documents: what other parts of a node keep in the journal by kind and name."""

from typing import Any

import pytest

from hpwsn.errors import JournalUnavailable


async def test_documents_survive_a_restart_by_kind(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.put_documents("sensor", {"a": b"1", "b": b"2"})
        await journal.put_documents("virtual", {"a": b"3"})
    async with opened() as (_, recovered):
        assert recovered.documents == {"sensor": {"a": b"1", "b": b"2"}, "virtual": {"a": b"3"}}


async def test_a_document_replaces_the_one_of_its_name_and_no_other(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.put_documents("sensor", {"a": b"1", "b": b"2"})
        await journal.put_documents("sensor", {"a": b"new"})
    async with opened() as (_, recovered):
        assert recovered.documents == {"sensor": {"a": b"new", "b": b"2"}}


async def test_removed_documents_are_counted_and_gone(opened: Any) -> None:
    async with opened() as (journal, _):
        await journal.put_documents("sensor", {"a": b"1", "b": b"2"})
        await journal.put_documents("virtual", {"a": b"3"})
        assert await journal.delete_documents("sensor", ["a", "unknown"]) == 1
        assert await journal.delete_documents("sensor", ["a"]) == 0
    async with opened() as (_, recovered):
        assert recovered.documents == {"sensor": {"b": b"2"}, "virtual": {"a": b"3"}}


async def test_documents_are_stored_before_the_next_append_completes(opened: Any, note: Any) -> None:
    async with opened() as (journal, _):
        stored = journal.put_documents("sensor", {"a": b"1"})
        await journal.append([note()])
        assert stored.done()


async def test_a_full_journal_stores_none_of_the_documents(opened: Any) -> None:
    async with opened(max_bytes=1 << 20) as (journal, _):
        many = {str(number): bytes(10_000) for number in range(200)}
        with pytest.raises(JournalUnavailable, match="is full"):
            await journal.put_documents("sensor", many)
        await journal.put_documents("sensor", {"small": b"1"})
    async with opened() as (_, recovered):
        assert recovered.documents == {"sensor": {"small": b"1"}}

"""The admin node's state on disk."""

from pathlib import Path

import pytest

from hpwsn.errors import HpwsnError
from hpwsn_admin.state_file import StateFile


def opened(directory: Path) -> StateFile:
    store = StateFile(directory)
    store.open()
    return store


def test_what_is_saved_is_loaded_by_the_next_process(tmp_path: Path) -> None:
    first = opened(tmp_path / "new" / "directory")
    assert first.load() is None
    first.save({"version": 7})
    first.close()
    second = opened(tmp_path / "new" / "directory")
    assert second.load() == {"version": 7}
    second.close()


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_a_damaged_file_is_kept_aside_and_the_admin_begins_anew(tmp_path: Path, damage: bytes) -> None:
    store = opened(tmp_path)
    store.path.write_bytes(damage)
    assert store.load() is None
    assert (tmp_path / "registry.damaged").read_bytes() == damage
    assert not store.path.exists()
    store.close()


def test_two_admin_nodes_do_not_share_a_directory(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(HpwsnError, match="in use by another admin node"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()

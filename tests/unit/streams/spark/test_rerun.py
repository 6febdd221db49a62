"""Which epoch a restarted query runs again, and what of it is in the log already."""

from pathlib import Path

from hpwsn.streams.spark.publishing.rerun import (
    KEPT,
    Rerun,
    find_rerun,
    has_record,
    local_folder,
    record_committed,
)
from hpwsn.streams.spark.reading.broker_link import RowsPage


class Log:
    """A node's log as a reader sees it, three events at a time."""

    def __init__(self, ids: list[str | None]) -> None:
        self._ids = ids

    def end(self, topic: str) -> int:
        return len(self._ids)

    def rows(self, topics: list[str], after: int, upto: int, *, limit: int) -> RowsPage:
        some = self._ids[after : min(after + 3, upto)]
        runs = [(after + n, 1, "t", 0, id_) for n, id_ in enumerate(some, 1)]
        return RowsPage(len(runs), runs, memoryview(b""), after + len(runs))


def checkpoint(folder: Path, begun: int, done: int) -> Path:
    for name, last in (("offsets", begun), ("commits", done)):
        (folder / name).mkdir(parents=True)
        for number in range(last + 1):
            (folder / name / str(number)).touch()
            (folder / name / f".{number}.crc").touch()
    return folder


def test_a_new_query_and_one_that_ended_between_two_epochs_run_none_again(tmp_path):
    assert find_rerun(tmp_path / "none", tmp_path) == Rerun()
    assert find_rerun(checkpoint(tmp_path / "query", 3, 3), tmp_path) == Rerun()


def test_an_epoch_that_began_is_run_again_behind_the_end_of_the_one_before(tmp_path):
    place = checkpoint(tmp_path / "query", 4, 3)
    assert find_rerun(place, tmp_path) == Rerun(4, 0)
    record_committed(tmp_path, 2, 70)
    record_committed(tmp_path, 3, 90)
    assert find_rerun(place, tmp_path) == Rerun(4, 90)


def test_the_note_of_the_very_epoch_that_is_run_again_is_not_trusted(tmp_path):
    place = checkpoint(tmp_path / "query", 4, 3)
    record_committed(tmp_path, 3, 90)
    record_committed(tmp_path, 4, 120)
    assert find_rerun(place, tmp_path) == Rerun(4, 90)
    record_committed(tmp_path, 4, 125)
    assert find_rerun(place, tmp_path) == Rerun(4, 90)


def test_a_note_that_cannot_be_read_means_the_whole_log(tmp_path):
    place = checkpoint(tmp_path / "query", 1, 0)
    for text in ("{", "[1]", "null", '{"a": 1}'):
        (tmp_path / "published.json").write_text(text)
        assert find_rerun(place, tmp_path) == Rerun(1, 0)


def test_it_applies_to_its_epoch_in_another_run_only():
    assert Rerun(4, 90).applies_to("4", "b")
    assert Rerun(4, 90, "a").applies_to("4", "b")
    assert not Rerun(4, 90, "a").applies_to("4", "a")
    assert not Rerun(4, 90).applies_to("5", "b")
    assert not Rerun().applies_to("0", "b")


def test_the_run_that_ended_the_epoch_before_is_found(tmp_path):
    place = checkpoint(tmp_path / "query", 4, 3)
    record_committed(tmp_path, 3, 90, "a")
    assert find_rerun(place, tmp_path) == Rerun(4, 90, "a")
    record_committed(tmp_path, 2, 70, "a")
    assert find_rerun(place, tmp_path) == Rerun(4, 70)


def test_a_record_keeps_the_last_epochs_only(tmp_path):
    assert not has_record(tmp_path)
    for epoch in range(20):
        record_committed(tmp_path, epoch, 10 * epoch)
    assert has_record(tmp_path)
    assert find_rerun(checkpoint(tmp_path / "a", 19 - KEPT + 1, 19 - KEPT), tmp_path).after == 10 * (
        19 - KEPT
    )
    assert find_rerun(checkpoint(tmp_path / "b", 19 - KEPT, 18 - KEPT), tmp_path).after == 0


def test_a_record_of_the_version_before_is_read(tmp_path):
    (tmp_path / "published.json").write_text("[[2, 70], [3, 90]]")
    assert find_rerun(checkpoint(tmp_path / "query", 4, 3), tmp_path) == Rerun(4, 90)


def test_only_a_checkpoint_in_a_folder_has_a_record(tmp_path):
    assert local_folder(str(tmp_path)) == tmp_path
    assert local_folder(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    assert local_folder("hdfs://host/path") is None
    assert local_folder("") is None
    assert find_rerun(None, None) == Rerun()


def test_the_ids_of_the_epoch_are_found_page_by_page():
    log = Log(["s#q/4/0/0", None, "s#q/4/0/1", "s#q/4/1/0", "x", "s#q/4/0/5", "s#q/5/0/0"])
    assert Rerun(4, 0).known(log, "t", "s#q/4/0/") == {"s#q/4/0/0", "s#q/4/0/1", "s#q/4/0/5"}
    assert Rerun(4, 1).known(log, "t", "s#q/4/0/") == {"s#q/4/0/1", "s#q/4/0/5"}

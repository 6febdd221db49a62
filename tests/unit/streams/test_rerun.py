"""Which epoch a restarted query runs again, and what of it is in the log already."""

from pathlib import Path

from hpwsn.streams.spark.reading.broker_link import RowsPage
from hpwsn.streams.spark.rerun import Rerun, find_rerun, record_committed


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


def test_it_travels_as_text():
    for rerun in (Rerun(), Rerun(4, 90)):
        assert Rerun.parse(str(rerun)) == rerun
    assert Rerun(4, 90).applies_to("4")
    assert not Rerun(4, 90).applies_to("5")
    assert not Rerun().applies_to("0")


def test_the_ids_of_the_epoch_are_found_page_by_page():
    log = Log(["s#q/4/0/0", None, "s#q/4/0/1", "s#q/4/1/0", "x", "s#q/4/0/5", "s#q/5/0/0"])
    assert Rerun(4, 0).known(log, "t", "s#q/4/0/") == {"s#q/4/0/0", "s#q/4/0/1", "s#q/4/0/5"}
    assert Rerun(4, 1).known(log, "t", "s#q/4/0/") == {"s#q/4/0/1", "s#q/4/0/5"}

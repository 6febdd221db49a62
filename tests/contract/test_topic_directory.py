"""What every topic directory does, whichever server or file is behind it."""

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hpwsn.topics.directory.directory import Declaration, Directory, TopicDirectoryError
from hpwsn.topics.editing.edit_plan import EditPlan, plan_edits, plan_import
from hpwsn.topics.editing.topic_edit import EditsConflict, EditsRefused, TopicEdit, etag_of
from hpwsn.topics.opening import open_directory
from hpwsn.topics.tree.declarations import Report, difference, internal_topics
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.patience import PATIENCE
from tests.slapd import Slapd

T = Topic.parse
MakeDirectory = Callable[[], Directory]


@pytest.fixture(scope="module")
def slapd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with Slapd(tmp_path_factory.mktemp("slapd")) as server:
        yield server


@pytest.fixture(params=["file", "ldap"])
def again(request: pytest.FixtureRequest, tmp_path: Path) -> MakeDirectory:
    """Opens the same directory once more, as another process would; empty at first."""
    if request.param == "ldap":
        server: Slapd = request.getfixturevalue("slapd")
        server.directory.replace([])
        return lambda: server.directory
    path = tmp_path / "topics.toml"
    path.write_text("")
    return lambda: open_directory(path.as_uri())


@pytest.fixture
def directory(again: MakeDirectory) -> Directory:
    return again()


def names(directory: Directory) -> list[str]:
    return [str(declaration.topic) for declaration in directory.load()]


def test_empty_directory_has_no_topics(directory: Directory) -> None:
    assert directory.load() == []


def test_added_topic_has_its_parents_and_is_seen_by_others(
    directory: Directory, again: MakeDirectory
) -> None:
    directory.add(Declaration(T("ALL:ALARM"), "at once", "tcp"))
    assert names(again()) == ["ALL", "ALL:ALARM"]
    found = again().load()[-1]
    assert (found.description, found.routing) == ("at once", "tcp")


def test_topics_come_breadth_first(directory: Directory) -> None:
    directory.replace(Declaration(T(topic)) for topic in ("B:X:Y", "A:X", "C"))
    depths = [name.count(":") for name in names(directory)]
    assert depths == sorted(depths)
    assert len(depths) == 6


def test_topic_of_another_namespace_is_another_topic(directory: Directory) -> None:
    directory.add(Declaration(T("A"), "ours"))
    directory.add(Declaration(T("{urn:x}A:{urn:y}B"), "theirs"))
    assert set(names(directory)) == {"A", "{urn:x}A", "{urn:x}A:{urn:y}B"}


def test_text_of_any_language_survives(directory: Directory) -> None:
    text = 'Überall "quoted" \\ 京B34C91\nsecond line\ttab'
    directory.add(Declaration(T("Straße:京"), text))
    assert directory.load()[-1].description == text


def test_adding_again_changes_only_what_is_filled_in(directory: Directory) -> None:
    directory.add(Declaration(T("A"), "text", "udp"))
    directory.add(Declaration(T("A"), routing="tcp"))
    found = directory.load()[0]
    assert (found.description, found.routing) == ("text", "tcp")


def test_a_topic_is_internal_public_or_says_nothing(directory: Directory, again: MakeDirectory) -> None:
    directory.add(Declaration(T("A:B"), visibility="internal"))
    directory.add(Declaration(T("A:B:C"), "below"))
    directory.add(Declaration(T("D"), visibility="public"))
    found = {str(each.topic): each.visibility for each in again().load()}
    assert found == {"A": None, "D": "public", "A:B": "internal", "A:B:C": None}
    assert internal_topics(again().load()) == {T("A:B"), T("A:B:C")}


def test_the_visibility_changes_and_changes_back(directory: Directory) -> None:
    directory.add(Declaration(T("A"), "text"))
    for visibility in ("internal", "public", "internal"):
        directory.add(Declaration(T("A"), visibility=visibility))
        directory.add(Declaration(T("A"), routing="tcp"))
        assert (directory.load()[0].visibility, directory.load()[0].description) == (visibility, "text")
    directory.replace([Declaration(T("A"))])
    assert directory.load()[0].visibility is None
    directory.add(Declaration(T("A"), visibility="internal"))
    assert directory.load()[0].visibility == "internal"


def test_a_public_topic_below_an_internal_one_is_refused_and_nothing_is_lost(directory: Directory) -> None:
    directory.replace(
        [Declaration(T("A:B"), visibility="internal"), Declaration(T("C:D"), visibility="public")]
    )
    before = directory.load()
    with pytest.raises(
        TopicDirectoryError, match="topic A:B:E cannot be public, since A:B above it is internal"
    ):
        directory.add(Declaration(T("A:B:E"), visibility="public"))
    with pytest.raises(TopicDirectoryError, match="topic C:D cannot be public"):
        directory.add(Declaration(T("C"), visibility="internal"))
    with pytest.raises(TopicDirectoryError, match="topic A:B:D cannot be public"):
        directory.move(T("C:D"), T("A:B:D"))
    with pytest.raises(TopicDirectoryError, match="topic A:B cannot be public"):
        directory.replace(
            [Declaration(T("A"), visibility="internal"), Declaration(T("A:B"), visibility="public")]
        )
    assert directory.load() == before


def test_a_moved_topic_stays_internal(directory: Directory) -> None:
    directory.add(Declaration(T("A:B:C"), visibility="internal"))
    directory.move(T("A:B"), T("D"))
    assert [str(each) for each in internal_topics(directory.load())] == ["D:C"]


def test_topic_with_others_below_is_removed_only_with_them(directory: Directory) -> None:
    directory.replace([Declaration(T("A:B")), Declaration(T("C"))])
    with pytest.raises(TopicDirectoryError, match="topic A has 1 below it"):
        directory.remove(T("A"))
    assert set(names(directory)) == {"A", "A:B", "C"}
    directory.remove(T("A"), recursive=True)
    assert names(directory) == ["C"]


def test_leaf_is_removed_and_its_parent_stays(directory: Directory) -> None:
    directory.add(Declaration(T("A:B")))
    directory.remove(T("A:B"))
    assert names(directory) == ["A"]


def test_moved_topic_takes_its_subtree_and_what_is_known_of_it(directory: Directory) -> None:
    directory.replace([Declaration(T("A:B")), Declaration(T("A:B:C"), "leaf", "udp")])
    directory.move(T("A:B"), T("X:Y:Z"))
    assert set(names(directory)) == {"A", "X", "X:Y", "X:Y:Z", "X:Y:Z:C"}
    found = directory.load()[-1]
    assert (found.description, found.routing) == ("leaf", "udp")


@pytest.mark.parametrize(
    ("topic", "new", "words"),
    [
        ("A", "A:B", "topic A cannot move to A:B"),
        ("A", "C", "topic C exists already"),
        ("Q", "R", "topic Q is not in the directory"),
    ],
)
def test_impossible_move_is_refused_and_changes_nothing(
    directory: Directory, topic: str, new: str, words: str
) -> None:
    directory.replace([Declaration(T("A")), Declaration(T("C"))])
    with pytest.raises(TopicDirectoryError, match=words):
        directory.move(T(topic), T(new))
    assert names(directory) == ["A", "C"]


def test_removing_an_unknown_topic_is_an_error(directory: Directory) -> None:
    with pytest.raises(TopicDirectoryError, match="topic Q is not in the directory"):
        directory.remove(T("Q"))


def test_replace_leaves_exactly_the_new_topics_and_merge_keeps_the_old(directory: Directory) -> None:
    directory.add(Declaration(T("A"), "old"))
    directory.replace([Declaration(T("B"))], merge=True)
    assert set(names(directory)) == {"A", "B"}
    directory.replace([Declaration(T("C"))])
    assert names(directory) == ["C"]


def test_concurrent_edits_are_all_kept(again: MakeDirectory) -> None:
    def edit(who: int) -> None:
        mine = again()
        for number in range(5):
            mine.add(Declaration(T(f"W{who}:N{number}")))

    threads = [threading.Thread(target=edit, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names(again())) == 4 * 6


def test_tree_is_built_from_what_is_loaded(directory: Directory) -> None:
    directory.add(Declaration(T("ALL:ALARM"), "at once", "tcp"))
    tree: TopicTree[str] = TopicTree(directory.load(), fixed=True)
    node = tree.publish(T("ALL:ALARM"))
    assert (node.code, node.description, node.routing, node.declared) == ("1.1", "at once", "tcp", True)


def test_topics_that_differ_only_in_case_are_two(directory: Directory) -> None:
    directory.add(Declaration(T("A:b"), "small"))
    directory.add(Declaration(T("A:B"), "large"))
    directory.add(Declaration(T("a:B")))
    directory.add(Declaration(T("A:B"), routing="udp"))
    found = {str(each.topic): (each.description, each.routing) for each in directory.load()}
    assert found == {
        "A": ("", None),
        "a": ("", None),
        "a:B": ("", None),
        "A:b": ("small", None),
        "A:B": ("large", "udp"),
    }


def test_moving_into_another_namespace_and_back_leaves_nothing_behind(directory: Directory) -> None:
    directory.replace([Declaration(T("A:B"), "text"), Declaration(T("{urn:x}S:{urn:y}T:U"))])
    directory.move(T("A"), T("{urn:x}S:A"))
    directory.move(T("{urn:x}S:{urn:y}T"), T("C"))
    assert set(names(directory)) == {"{urn:x}S", "{urn:x}S:A", "{urn:x}S:A:B", "C", "C:U"}
    directory.move(T("{urn:x}S:A"), T("a"))
    assert set(names(directory)) == {"{urn:x}S", "a", "a:B", "C", "C:U"}


def test_load_of_many_topics_tells_its_progress(directory: Directory) -> None:
    seen: list[tuple[int, int]] = []
    directory.replace(
        (Declaration(T(f"A{number % 10}:B{number}")) for number in range(300)),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert len(directory.load()) == 310
    assert seen[-1] == (310, 310)


class Follower:
    """A watcher's reports put together, as a node does it."""

    def __init__(self, directory: Directory) -> None:
        self.known: dict[Topic, Declaration] = {}
        self.problem: str | None = None
        self._reports: queue.Queue[Report] = queue.Queue()
        self.watch = directory.watch(self._reports.put)
        self.watch.start()

    def until(self, *topics: str) -> None:
        """Wait until exactly these topics are known."""
        while {str(topic) for topic in self.known} != set(topics):
            self.take()

    def take(self) -> None:
        report = self._reports.get(timeout=PATIENCE)
        self.problem = report.problem
        change = report.change
        if change is not None:
            change = difference(self.known, change.declared) if report.whole else change
            self.known.update((each.topic, each) for each in change.declared)
            for topic in change.removed:
                del self.known[topic]


def test_watcher_tells_what_is_there_and_each_change(directory: Directory, again: MakeDirectory) -> None:
    directory.replace([Declaration(T("A:B")), Declaration(T("C"))])
    follower = Follower(again())
    try:
        follower.until("A", "A:B", "C")
        directory.add(Declaration(T("A:D"), "new", "tcp"))
        follower.until("A", "A:B", "A:D", "C")
        assert follower.known[T("A:D")].description == "new"
        directory.move(T("A"), T("C:X"))
        follower.until("C", "C:X", "C:X:B", "C:X:D")
        assert follower.known[T("C:X:D")].routing == "tcp"
        directory.remove(T("C"), recursive=True)
        follower.until()
        directory.replace([Declaration(T("E:F:G"))])
        follower.until("E", "E:F", "E:F:G")
    finally:
        follower.watch.close()
    assert {topic: each.path for topic, each in follower.known.items()} == {
        each.topic: each.path for each in directory.load()
    }


def test_watcher_that_is_told_to_reads_again(directory: Directory, again: MakeDirectory) -> None:
    directory.replace([Declaration(T("A"))])
    follower = Follower(again())
    try:
        follower.until("A")
        follower.watch.reload()
        follower.take()
        assert follower.problem is None
        assert set(follower.known) == {T("A")}
    finally:
        follower.watch.close()


# Edits of a plan


def edit(directory: Directory, *edits: TopicEdit, dry_run: bool = False) -> EditPlan:
    return directory.edit(lambda known: plan_edits(known, edits), dry_run)


def values(directory: Directory) -> dict[str, tuple[str, str | None, str | None]]:
    return {str(each.topic): (each.description, each.routing, each.visibility) for each in directory.load()}


def etag(directory: Directory, topic: str) -> str:
    return next(etag_of(each) for each in directory.load() if each.topic == T(topic))


START = [
    Declaration(T("A"), "first", "udp"),
    Declaration(T("A:B"), "second", visibility="internal"),
    Declaration(T("A:B:C")),
    Declaration(T("{urn:x}D:E"), "theirs"),
]
MANY = (
    TopicEdit("set", T("A"), description="", routing="tcp"),
    TopicEdit("set", T("A"), description="again"),
    TopicEdit("move", T("A:B"), T("N:M:B")),
    TopicEdit("add", T("N:M:B:F:G"), description="new"),
    TopicEdit("set", T("N:M:B:C"), visibility="internal"),
    TopicEdit("move", T("{urn:x}D"), T("{urn:y}D")),
    TopicEdit("add", T("a"), description="differs from A only in case"),
    TopicEdit("remove", T("{urn:y}D:E")),
    TopicEdit("move", T("N"), T("O")),
)


def test_a_plan_is_carried_out_whole_and_its_undo_restores_everything(directory: Directory) -> None:
    directory.replace(START)
    before = values(directory)
    made = edit(directory, *MANY)
    after = values(directory)
    assert after == {
        "A": ("again", "tcp", None),
        "a": ("differs from A only in case", None, None),
        "O": ("", None, None),
        "O:M": ("", None, None),
        "O:M:B": ("second", None, "internal"),
        "O:M:B:C": ("", None, "internal"),
        "O:M:B:F": ("", None, None),
        "O:M:B:F:G": ("new", None, None),
        "{urn:y}D": ("", None, None),
    }
    assert {str(each.topic): etag_of(each) for each in made.declarations()} == {
        name: etag(directory, name) for name in after
    }
    again = edit(directory, *made.undo())
    assert values(directory) == before
    edit(directory, *again.undo())
    assert values(directory) == after


def test_a_dry_run_changes_nothing(directory: Directory) -> None:
    directory.replace(START)
    before = directory.load()
    assert len(edit(directory, *MANY, dry_run=True).steps) > 5
    assert directory.load() == before


def test_an_edit_elsewhere_is_no_conflict_and_one_of_the_same_topic_is(
    directory: Directory, again: MakeDirectory
) -> None:
    directory.replace(START)
    seen = etag(directory, "A")
    edit(again(), TopicEdit("set", T("A:B"), description="other"))
    edit(directory, TopicEdit("set", T("A"), description="mine", etag=seen))
    for op in ({"op": "set", "description": "x"}, {"op": "remove"}, {"op": "move", "to": T("Z")}):
        with pytest.raises(EditsConflict, match="topic A was changed by others") as raised:
            edit(directory, TopicEdit(topic=T("A"), etag=seen, **op))  # type: ignore[arg-type]
        (conflict,) = raised.value.conflicts
        assert (conflict.seen, conflict.theirs and conflict.theirs.description) == (seen, "mine")
    edit(directory, TopicEdit("set", T("A"), description="last writer wins"))
    edit(directory, TopicEdit("set", T("A"), description="any state", etag="*"))
    assert values(directory)["A"][0] == "any state"


def test_an_undo_is_refused_once_somebody_else_has_edited_the_topic(directory: Directory) -> None:
    directory.replace(START)
    undo = edit(directory, TopicEdit("set", T("A"), description="mine")).undo()
    edit(directory, TopicEdit("set", T("A"), description="theirs"))
    with pytest.raises(EditsConflict):
        edit(directory, *undo)
    undo = edit(directory, TopicEdit("add", T("N"))).undo()
    edit(directory, TopicEdit("add", T("N:child")))
    with pytest.raises(EditsConflict, match="topic N has 1 topics below it, and not 0"):
        edit(directory, *undo)
    assert values(directory)["A"][0] == "theirs"
    assert "N:child" in values(directory)


def test_one_edit_that_is_not_possible_refuses_all_and_every_reason_is_named(directory: Directory) -> None:
    directory.replace(START)
    before = directory.load()
    with pytest.raises(EditsRefused) as refused:
        edit(
            directory,
            TopicEdit("set", T("A"), description="x"),
            TopicEdit("set", T("A"), routing="pigeon"),
            TopicEdit("move", T("A"), T("A:X")),
        )
    assert [each.partition(":")[0] for each in refused.value.problems] == ["changes[1]", "changes[2]"]
    with pytest.raises(EditsConflict) as conflict:
        edit(directory, TopicEdit("add", T("A")), TopicEdit("remove", T("nowhere")), TopicEdit("add", T("N")))
    assert [str(each.topic) for each in conflict.value.conflicts] == ["A", "nowhere"]
    with pytest.raises(EditsRefused, match="topic A:B:C cannot be public"):
        edit(directory, TopicEdit("set", T("A:B:C"), visibility="public"))
    assert directory.load() == before


def test_an_import_merges_or_replaces_and_can_be_undone(directory: Directory) -> None:
    directory.replace(START)
    before = values(directory)
    new = [Declaration(T("A"), routing="tcp"), Declaration(T("Z:Y"), "new")]
    for merge, there in ((True, {*before, "Z", "Z:Y"}), (False, {"A", "Z", "Z:Y"})):
        made = directory.edit(lambda known, merge=merge: plan_import(known, new, merge))  # type: ignore[misc]
        assert set(values(directory)) == there
        assert values(directory)["A"] == (("first" if merge else ""), "tcp", None)
        edit(directory, *made.undo())
        assert values(directory) == before


def test_editors_at_once_lose_nothing_and_each_state_has_one_winner(
    directory: Directory, again: MakeDirectory
) -> None:
    directory.replace([Declaration(T("A"), "0")])
    won: list[str] = []

    def count(name: str) -> None:
        mine = again()
        for _ in range(15):
            edit(mine, TopicEdit("add", T(f"{name}{len(mine.load())}:x")))
            seen = mine.load()[0]
            try:
                edit(
                    mine,
                    TopicEdit("set", T("A"), description=f"{int(seen.description) + 1}", etag=etag_of(seen)),
                )
                won.append(name)
            except EditsConflict:
                continue

    editors = [threading.Thread(target=count, args=(name,)) for name in ("E", "F", "G")]
    for each in editors:
        each.start()
    for each in editors:
        each.join(PATIENCE)
    assert values(directory)["A"][0] == str(len(won))
    assert len(won) >= 15

"""What every topic directory does, whichever server or file is behind it."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hpwsn.topics.directory import Declaration, Directory, TopicDirectoryError, open_directory
from hpwsn.topics.tree import TopicTree
from hpwsn_client.wsn.topics import Topic

T = Topic.parse
MakeDirectory = Callable[[], Directory]


@pytest.fixture(params=["file"])
def again(request: pytest.FixtureRequest, tmp_path: Path) -> MakeDirectory:
    """Opens the same directory once more, as another process would; empty at first."""
    assert request.param == "file"
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

"""What is special about the directory in a file, and which URL opens what."""

import stat
from pathlib import Path

import pytest

from hpwsn.topics.directory.directory import Declaration, TopicDirectoryError
from hpwsn.topics.directory.topic_file import FileDirectory
from hpwsn.topics.opening import open_directory
from hpwsn_client.wsn.topics.topic_expressions import Topic

T = Topic.parse


def test_path_and_file_url_open_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "my topics.toml"
    open_directory(str(path)).add(Declaration(T("A")))
    for url in (path.as_uri(), f"file:{path}", f"file://localhost{path}"):
        assert [str(each.topic) for each in open_directory(url).load()] == ["A"]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ldap://admin:secret@host/ou=topics", r"ldap://host/ou=topics: .* a user; .* topics.bind_dn"),
        ("ldaps://host", "write ldap://host:port/base"),
        ("ldap://host:many/ou=topics", "ldap://host:many/ou=topics: Port could not"),
        ("ldap://host/topics", "'topics' is not a distinguished name"),
        ("ldap://host/ou=topics?cn", "write ldap://host:port/base"),
        ("ldapi://host/ou=topics", "unknown scheme 'ldapi'"),
        ("http://host/topics.toml", "unknown scheme 'http'"),
        ("file://topics.toml", "cannot name the host 'topics.toml'"),
        ("topics.ini", r"must end in \.toml"),
        ("", r"must end in \.toml"),
    ],
)
def test_url_that_opens_nothing_is_an_error_with_a_remedy(url: str, words: str) -> None:
    with pytest.raises(TopicDirectoryError, match=words) as caught:
        open_directory(url)
    assert "secret" not in str(caught.value)


def test_missing_file_is_an_error_to_a_reader_and_made_by_an_addition(tmp_path: Path) -> None:
    directory = FileDirectory(tmp_path / "topics.toml")
    for act in (directory.load, lambda: directory.remove(T("A"))):
        with pytest.raises(TopicDirectoryError, match=r"topics\.toml: there is no such file; create it with"):
            act()
    directory.add(Declaration(T("A")))
    assert len(directory.load()) == 1


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopicDirectoryError, match=r"gone/topics\.toml: the folder .*gone does not exist"):
        FileDirectory(tmp_path / "gone" / "topics.toml").add(Declaration(T("A")))


def test_mistake_in_the_file_names_the_file_and_leaves_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "topics.toml"
    path.write_text("[topics.A]\ncolour = 3\n")
    for act in (FileDirectory(path).load, lambda: FileDirectory(path).add(Declaration(T("B")))):
        with pytest.raises(TopicDirectoryError, match=r"topics\.toml: topics\.A\.colour"):
            act()
    assert path.read_text() == "[topics.A]\ncolour = 3\n"


def test_file_in_another_encoding_is_refused_with_words(tmp_path: Path) -> None:
    path = tmp_path / "topics.toml"
    path.write_bytes("[topics.'Straße']".encode("latin-1"))
    with pytest.raises(TopicDirectoryError, match="must be UTF-8"):
        FileDirectory(path).load()


def test_edit_keeps_mode_namespace_and_symbolic_link_and_leaves_no_half_file(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text('namespace = "urn:mine"\n[topics.A]\n')
    real.chmod(0o640)
    link = tmp_path / "topics.toml"
    link.symlink_to(real)
    FileDirectory(link).add(Declaration(T("{urn:mine}A:B")))
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert 'namespace = "urn:mine"' in real.read_text()
    assert "[topics.A.B]" in real.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"real.toml", "topics.toml", ".real.toml.lock"}


def test_text_that_no_file_can_hold_is_refused_and_the_file_stays(tmp_path: Path) -> None:
    directory = FileDirectory(tmp_path / "topics.toml")
    directory.add(Declaration(T("A"), "good"))
    with pytest.raises(TopicDirectoryError, match="UTF-8"):
        directory.add(Declaration(T("B"), "\udc80"))
    assert [each.description for each in directory.load()] == ["good"]

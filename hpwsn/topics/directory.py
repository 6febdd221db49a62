"""The port of the topic directory: where declared topics come from, and where an admin's edits go.

Which implementation serves a URL is decided here and nowhere else: a path or `file:` URL names a TOML file
(hpwsn.topics.file). No directory at all means an open tree, which is the node's matter and not this port's.
LDAP belongs to a later version and is refused with words.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from hpwsn.errors import HpwsnError
from hpwsn.topics.declaration import Declaration
from hpwsn_client.wsn.topics import Topic

__all__ = ["Declaration", "Directory", "TopicDirectoryError", "open_directory"]


class TopicDirectoryError(HpwsnError):
    """A directory that cannot be read or changed; the text names it, the place in it and the remedy."""


class Directory(Protocol):
    """A source of declared topics that can be edited; all calls block, so the node makes them in a thread.

    Live changes will come as one more method, `watch(callback)`, which reports each change as an edit that
    hpwsn.topics.tree.TopicTree understands (add, remove, move, replace_all); a directory without it is read
    once at start.
    """

    def load(self) -> list[Declaration]:
        """All declared topics, breadth-first, each after its parent."""
        ...

    def add(self, declaration: Declaration) -> None:
        """Declare a topic and its missing parents; of one that exists, change what is filled in."""
        ...

    def remove(self, topic: Topic, recursive: bool = False) -> None:
        """Remove a topic; one with topics below it only where `recursive`."""
        ...

    def move(self, topic: Topic, new: Topic) -> None:
        """Give a topic and its subtree another place."""
        ...

    def replace(self, declarations: Iterable[Declaration], merge: bool = False) -> None:
        """Declare exactly these topics, or with `merge` add each of them to what is there, in one step."""
        ...


def open_directory(url: str) -> Directory:
    """The directory that a URL or a path names; it is not read yet."""
    scheme = urlsplit(url).scheme.lower() if "://" in url or url.startswith("file:") else ""
    if scheme in ("ldap", "ldaps", "ldapi"):
        raise TopicDirectoryError(
            f"topic directory {_without_password(url)}: LDAP directories are not in this version "
            "(later: pip install 'hpwsn[ldap]'); name a TOML file instead"
        )
    if scheme not in ("", "file"):
        raise TopicDirectoryError(
            f"topic directory {url}: unknown scheme {scheme!r}; name a path or file: URL"
        )
    return _open_file(url, _file_path(url) if scheme else Path(url))


def _open_file(url: str, path: Path) -> Directory:
    from hpwsn.topics.file import FileDirectory

    if path.suffix.lower() != ".toml":
        raise TopicDirectoryError(f"topic directory {url!r}: not a .toml file; name one, such as topics.toml")
    return FileDirectory(path)


def _file_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise TopicDirectoryError(
            f"topic directory {url}: {parts.netloc!r} is taken for a host; write file:///absolute/path.toml"
        )
    return Path(unquote(parts.path))


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

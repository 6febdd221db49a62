"""The topic directory in a TOML file (format: hpwsn.topics.tree.topic_toml, docs/topics-file.md).

Reading needs no lock, since a change replaces the whole file atomically: write a temporary file, flush it to
disk, rename it. Changes are serialised by an flock on a `.lock` file beside it, which is kept. An edit
rewrites the file, so comments are lost. A change creates a missing file. Reading a missing file is an error,
unless the file is optional and was never there: a file that disappears has not lost its topics on purpose.
"""

import fcntl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hpwsn.durable_files import sync_folder, write_atomically
from hpwsn.topics.directory.directory import Planner, Progress, TopicDirectoryError, no_progress
from hpwsn.topics.directory.topic_file_watch import FileWatch, Stamp, stamp_of
from hpwsn.topics.editing.edit_plan import EditPlan
from hpwsn.topics.tree.declarations import (
    Declaration,
    EditError,
    Report,
    add_declaration,
    merge_declarations,
    move_topic,
    remove_topic,
    with_parents,
)
from hpwsn.topics.tree.topic_toml import Document, DocumentError, encode_document, parse_document
from hpwsn_client.wsn.topics.topic_expressions import Topic

_Edit = Callable[[tuple[Declaration, ...]], list[Declaration]]


class FileDirectory:
    """Declared topics in one TOML file; its last content stays in memory, to spare parsing it again."""

    remote = False

    def __init__(self, path: Path, optional: bool = False) -> None:
        self.path = path
        self._optional = optional
        self._new_mode = 0o600 if optional else None
        self._last: tuple[Stamp, Document] = (None, Document(()))

    def load(self) -> list[Declaration]:
        """Return all declared topics, breadth-first, each after its parent."""
        return list(self._read().declarations)

    def add(self, declaration: Declaration) -> None:
        """Declare a topic and its missing parents; for an existing one, set the non-empty fields."""
        self._edit(lambda known: add_declaration(known, declaration), create=True)

    def remove(self, topic: Topic, recursive: bool = False) -> None:
        """Remove a topic; one with children needs `recursive`."""
        self._edit(lambda known: remove_topic(known, topic, recursive))

    def move(self, topic: Topic, new: Topic) -> None:
        """Move a topic and its subtree."""
        self._edit(lambda known: move_topic(known, topic, new))

    @property
    def identity(self) -> str:
        """The path of the file."""
        return str(self.path)

    @property
    def source(self) -> str:
        """The path of the file."""
        return str(self.path)

    def edit(self, plan: Planner, dry_run: bool = False) -> EditPlan:
        """Carry out a plan with one replacement of the file."""
        with self._errors("change"):
            if dry_run:
                return plan(_by_topic(self._read()))
            with self._lock():
                old = self._read()
                made = plan(_by_topic(old))
                if made.steps:
                    self._write(Document(tuple(made.declarations()), old.namespace))
                return made

    def watch(self, report: Callable[[Report], None]) -> FileWatch:
        """Return a watcher that reads the file again when it changes."""
        return FileWatch(self.path, self.load, report)

    def replace(
        self, declarations: Iterable[Declaration], merge: bool = False, progress: Progress = no_progress
    ) -> None:
        """Declare exactly these topics, or with `merge` add them to the existing ones, atomically."""
        new = list(declarations)
        self._edit(lambda known: merge_declarations(known if merge else (), new), create=True)
        total = len(with_parents(new))
        progress(total, total)

    def _edit(self, edit: _Edit, create: bool = False) -> None:
        with self._errors("change"), self._lock():
            missing = create and not self.path.exists()
            old = Document(()) if missing else self._read()
            self._write(Document(tuple(edit(old.declarations)), old.namespace))

    def _read(self) -> Document:
        with self._errors("read"):
            if self._optional and not self.path.exists():
                return Document(())
            stamp = stamp_of(self.path)
            if stamp is None or stamp != self._last[0]:
                self._last = stamp, parse_document(self.path.read_text(encoding="utf-8"))
            self._optional = False
            return self._last[1]

    def _write(self, document: Document) -> None:
        # Replace the target of a symbolic link, not the link.
        path = self.path.resolve()
        mode = path.stat().st_mode & 0o7777 if path.exists() else self._new_mode
        write_atomically(path, encode_document(document), hidden=True, mode=mode)
        sync_folder(path.parent)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        path = self.path.resolve()
        with path.with_name(f".{path.name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            if not self.path.parent.exists():
                raise TopicDirectoryError(
                    f"topic file {self.path}: the folder {self.path.parent} does not exist; create it first"
                ) from None
            raise TopicDirectoryError(
                f"topic file {self.path}: there is no such file; "
                f"create it with `hpwsn topics add TOPIC --topics {self.path}`, or correct the path"
            ) from None
        except (DocumentError, EditError) as error:
            raise TopicDirectoryError(f"topic file {self.path}: {error}") from None
        except UnicodeError as error:
            raise TopicDirectoryError(f"topic file {self.path}: it must be UTF-8 text: {error}") from None
        except OSError as error:
            raise TopicDirectoryError(f"topic file {self.path}: cannot {verb} it: {error.strerror}") from None


def _by_topic(document: Document) -> dict[Topic, Declaration]:
    return {each.topic: each for each in document.declarations}

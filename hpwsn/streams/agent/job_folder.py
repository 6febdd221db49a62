"""The folder of a service that the node runs: definition, description, process, checkpoint and log.

`service.json` is written last and removed first: a folder without it is what an interrupted request has left,
and is removed at the next start. A second `create` that fails brings the old files back. The log is cut when
it grows beyond MAX_LOG, at its beginning.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpwsn.durable_files import sync_folder, write_atomically
from hpwsn.streams.agent.job_process import ProcessIdentity, identity_of

log = logging.getLogger(__name__)

VERSION = 1
MAX_LOG = 4 << 20
"""Bytes of a log beyond which its older part is removed."""
KEPT_LOG = 1 << 20
"""Bytes that remain then."""
SHOWN_LINES, SHOWN_BYTES = 20, 4096
"""The end of the log that the door shows."""
SEARCHED_BYTES = 64 << 10
"""The end of the log in which the reason of a job's end is searched."""
START_LINE = "(the node starts the job)"
"""The line of the log before those of a process."""
ERROR_LINE = "hpwsn: error: "
"""How a command of HPwsn begins the line with its error."""


class JobFolder:
    """The files of one service; `checkpoints` is the folder for checkpoints, None for this folder."""

    def __init__(self, path: Path, checkpoints: Path | None = None) -> None:
        self.path = path.resolve()
        self.definition = self.path / "definition.toml"
        self.log = self.path / "job.log"
        self.scratch = self.path / "tmp"
        self.checkpoint = self.path / "checkpoint" if checkpoints is None else checkpoints / path.name
        self._service = self.path / "service.json"
        self._job = self.path / "job.json"

    @classmethod
    def of(cls, root: Path, uri: str, checkpoints: Path | None) -> JobFolder:
        """The folder of a service; its name is a hash, because a uri may have any characters."""
        return cls(root / hashlib.sha256(uri.encode()).hexdigest()[:32], checkpoints)

    def create(self, definition: str, service: Mapping[str, Any], new_log: bool = False) -> None:
        """Write the definition and the description of a service to disk, durably.

        A definition never stands beside the description of another one, which could give it the token of
        jobs. On an error, what was there before is there again.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        described = json.dumps({"version": VERSION, **service}, ensure_ascii=False, indent=1)
        aside: dict[Path, Path] = {}
        try:
            for file in (self._service, self.definition, *((self.log,) if new_log else ())):
                if file.exists():
                    aside[file] = file.replace(file.with_name(f"{file.name}.old"))
            sync_folder(self.path)
            write_atomically(self.definition, definition)
            write_atomically(self._service, described)
            sync_folder(self.path)
            sync_folder(self.path.parent)
        except BaseException:
            self._service.unlink(missing_ok=True)
            for file, old in reversed(aside.items()):
                old.replace(file)
            raise
        for old in aside.values():
            old.unlink(missing_ok=True)

    def service(self) -> dict[str, Any] | None:
        """The description of the service; None if there is no usable one."""
        try:
            found = json.loads(self._service.read_text("utf-8"))
            if found.pop("version") != VERSION or not (found["uri"] and found["topic"]):
                raise ValueError(f"it is not of version {VERSION}")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            log.warning("cannot load the service in %s: %s; its job is not run", self.path, error)
            return {}
        return dict(found)

    def save_process(self, identity: ProcessIdentity, command: list[str]) -> None:
        """Note the process of the job and the command that it runs."""
        write_atomically(self._job, json.dumps({**identity.document(), "command": command}))

    def process(self) -> tuple[ProcessIdentity | None, list[str]]:
        """The process that was noted last, and its command."""
        try:
            found = json.loads(self._job.read_text("utf-8"))
            return identity_of(found), list(found["command"])
        except (OSError, ValueError, LookupError, TypeError):
            return None, []

    def prepare(self) -> None:
        """Make room for a new process: no temporary files of an earlier one."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()

    def trim_log(self) -> None:
        """Remove the older part of a log that has grown too large; the job appends to the same file."""
        try:
            if self.log.stat().st_size <= MAX_LOG:
                return
            with self.log.open("r+b") as file:
                file.seek(-KEPT_LOG, os.SEEK_END)
                kept = file.read().partition(b"\n")[2]
                file.truncate(0)
            with self.log.open("ab") as file:
                file.write(b"(earlier lines were removed)\n" + kept)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("cannot shorten %s: %s", self.log, error)

    def mark_start(self) -> None:
        """Note in the log that another process starts; on a full disk, `reason` cannot tell them apart."""
        with suppress(OSError), self.log.open("ab") as file:
            file.write(f"{START_LINE}\n".encode())

    def last_lines(self) -> list[str]:
        """The last lines of the job's log."""
        return self._end_of_log(SHOWN_BYTES)[-SHOWN_LINES:]

    def reason(self, runs_again: bool = False) -> str | None:
        """Why the last process, or the one before if it runs again, has ended.

        It is the last error of the process, else its last line; None if it has written none.
        """
        lines = self._end_of_log(SEARCHED_BYTES)
        starts = [number for number, line in enumerate(lines) if line == START_LINE]
        if runs_again and starts:
            del lines[starts.pop() :]
        written = [line.strip()[:SHOWN_BYTES] for line in lines[starts[-1] + 1 if starts else 0 :]]
        errors = [line.removeprefix(ERROR_LINE) for line in written if line.startswith(ERROR_LINE)]
        return next((line for line in reversed(errors or written) if line), None)

    def _end_of_log(self, most: int) -> list[str]:
        try:
            with self.log.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - most))
                return file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return []

    def remove(self) -> None:
        """Remove everything: description first, then checkpoint, log and definition."""
        self._service.unlink(missing_ok=True)
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        shutil.rmtree(self.path, ignore_errors=True)


def saved_folders(root: Path, checkpoints: Path | None) -> Iterator[tuple[JobFolder, dict[str, Any]]]:
    """The folders with a service; leftovers of interrupted requests are removed."""
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        folder = JobFolder(path, checkpoints)
        service = folder.service()
        if service:
            yield folder, service
        elif service is None:
            folder.remove()

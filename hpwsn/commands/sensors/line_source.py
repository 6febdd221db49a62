"""Lines of a file, of standard input or of a command, read by a thread and handed on in batches.

A source can be stopped and started again: a command is ended and run again, and a file or a pipe is not read
meanwhile, so that whoever writes to the pipe waits. With `follow`, a file is read as it grows; when it is
replaced or cut short, as log rotation does, the new one is read from its beginning.
"""

from __future__ import annotations

import os
import queue
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from hpwsn.errors import BadArguments, HpwsnError

WAITING = 10_000
"""Lines that are read ahead."""
GATHER = 0.2
"""Seconds for which a batch gathers lines after its first."""
LOOK = 0.2
"""Seconds between two looks at the end of a file."""
LONGEST_LINE = 1 << 20
STOP = 10.0
"""Seconds for a command to end after SIGTERM, before SIGKILL."""


class LineSource:
    """The lines of a file (`-` is standard input) or of a command; it is running until `stop`."""

    def __init__(
        self,
        file: str | None,
        command: str | None,
        follow: bool,
        change: Callable[[bytes], bytes] = lambda line: line,
    ) -> None:
        """`change` is called with each line as soon as it is read."""
        self._change = change
        self._file = file
        self._command = command
        self._follow = follow
        self._lines: queue.Queue[bytes | None] = queue.Queue(WAITING)
        self._running = threading.Event()
        self._running.set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._problem: HpwsnError | None = None
        if file is not None and file != "-" and not Path(file).exists():
            raise BadArguments(f"{file} does not exist; give a file of readings, or - for standard input")

    def open(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="line-source", daemon=True).start()

    def start(self) -> None:
        """Read on, or run the command."""
        self._running.set()

    def stop(self) -> None:
        """Stop reading, or end the command."""
        with self._lock:
            self._running.clear()
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP)
            except subprocess.TimeoutExpired:
                process.kill()

    def batches(self, most: int) -> Iterator[list[bytes]]:
        """Lines without their ends, up to `most` at a time; blank lines are left out."""
        ended = False
        while not ended:
            first = self._lines.get()
            batch = [first]
            until = time.monotonic() + GATHER
            while first is not None and len(batch) < most and batch[-1] is not None:
                try:
                    batch.append(self._lines.get(timeout=max(0.0, until - time.monotonic())))
                except queue.Empty:
                    break
            ended = batch[-1] is None
            if found := [line for line in batch if line is not None]:
                yield found
        if self._problem is not None:
            raise self._problem

    def _read(self) -> None:
        try:
            for line in self._of_command() if self._command is not None else self._of_file():
                if line := line.strip():
                    self._lines.put(self._change(line))
        except OSError as error:
            self._problem = HpwsnError(f"{self._file or self._command}: {error.strerror}")
        except HpwsnError as error:
            self._problem = error
        self._lines.put(None)

    def _of_file(self) -> Iterator[bytes]:
        if self._file == "-":
            yield from self._running_lines(sys.stdin.buffer)
            return
        path = Path(str(self._file))
        while True:
            with path.open("rb") as opened:
                yield from self._running_lines(opened)
                rest = b""
                while self._follow and not _is_replaced(path, opened):
                    self._running.wait()
                    # The end of a line may not be written yet.
                    rest += opened.readline(LONGEST_LINE)
                    if rest.endswith(b"\n") or len(rest) > LONGEST_LINE:
                        yield rest
                        rest = b""
                    elif opened.tell() == os.fstat(opened.fileno()).st_size:
                        time.sleep(LOOK)
            if not self._follow:
                return

    def _running_lines(self, stream: BinaryIO) -> Iterator[bytes]:
        """The lines until the end of a stream, each read only while the source is running."""
        while True:
            self._running.wait()
            line = stream.readline(LONGEST_LINE)
            if not line:
                return
            if self._follow and stream is not sys.stdin.buffer and not line.endswith(b"\n"):
                stream.seek(-len(line), os.SEEK_CUR)
                return
            yield line

    def _of_command(self) -> Iterator[bytes]:
        words = shlex.split(str(self._command))
        while True:
            self._running.wait()
            with self._lock:
                if not self._running.is_set():
                    continue
                self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            with self._process as process:
                assert process.stdout is not None
                yield from iter(lambda: process.stdout.readline(LONGEST_LINE), b"")  # type: ignore[union-attr]
            if self._running.is_set():
                if process.returncode:
                    raise HpwsnError(f"{self._command!r} ended with status {process.returncode}")
                return


def _is_replaced(path: Path, opened: BinaryIO) -> bool:
    """Whether a path has another file now, or the same one cut short; a missing file may come back."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return False
    before = os.fstat(opened.fileno())
    return (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino) or now.st_size < opened.tell()

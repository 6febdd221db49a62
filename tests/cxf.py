"""Programs on Apache CXF: CXF's own client classes, and CXF's broker, each in a process of its own.

`scripts/test --interop` builds them, and CI always; tests/interop/cxf has their source.
"""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.patience import PATIENCE

FOLDER = Path(__file__).parent / "interop" / "cxf"


class CxfProgram:
    """A Java program that tells a line at a time on standard output, and ends with its standard input."""

    def __init__(self, module: str, main: str, *arguments: str, log: Path) -> None:
        home = FOLDER / module / "target"
        if not (FOLDER / "target" / "built").is_file() or shutil.which("java") is None:
            pytest.skip(
                "needs the programs on Apache CXF: apt-get install maven default-jdk-headless,"
                " then scripts/test --interop"
            )
        classpath = os.pathsep.join((str(home / "classes"), str(home / "dependency" / "*")))
        # The first compiler alone: a program that lives for a minute gains nothing by the second.
        self._command = ["java", "-XX:TieredStopAtLevel=1", "-cp", classpath, main, *arguments]
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
                cwd=self._log.parent,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(PATIENCE)
        self._process.stdout.close()

    def tell(self, line: str) -> None:
        """Write one line to the program."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def hear(self, beginning: str) -> str:
        """What follows the beginning of the next line that has it."""
        assert self._process.stdout is not None
        until = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while selector.select(timeout=max(0.0, until - time.monotonic())):
                line = self._process.stdout.readline().decode()
                if line.startswith(f"{beginning} "):
                    return line.removeprefix(beginning).strip()
                if not line:
                    break
        raise AssertionError(f"the program told nothing of {beginning!r}; its log:\n{self.log()}")

    def log(self) -> str:
        """The end of what it wrote to standard error."""
        return self._log.read_text("utf-8", "replace")[-8000:]

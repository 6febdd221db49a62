"""A pytest plugin: failed tests are tried once more, alone, and those that then pass are named as unsteady.

`scripts/test` loads it (`-p tests.second_try`). Beside others, in processes that share a machine, a test can
fail that is right by itself. Its second try decides: the counts, the tracebacks and the exit status are those
of that try. A run with an unsteady test is green, but never in silence: each is named at the end, with what
it said when it failed, and `unsteady: N` stands above pytest's own closing line, which counts all tests.

The failed tests of all files run together in one process of their own, in order, since those of a file share
servers. Failures in more files than `MOST_FILES` are no accident and are not tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

MOST_FILES = 5
RECORD = "--record-reports"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(RECORD, metavar="FILE", help="write each report to a file, for tests/second_try.py")


def pytest_configure(config: pytest.Config) -> None:
    """Record in a second try, try again in a first one; a worker of xdist does neither."""
    if hasattr(config, "workerinput"):
        return
    if file := config.getoption(RECORD):
        config.pluginmanager.register(Recorder(config, Path(file)))
    elif not (config.option.collectonly or config.option.usepdb):
        config.pluginmanager.register(SecondTry(config))


class Recorder:
    """Leaves the reports of this run to the process that started it, a line each."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._config = config
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(data) + "\n")


class SecondTry:
    """Tries the failures of this run again when it is over, and corrects its results."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, list[pytest.TestReport]] = {}
        self._unsteady: dict[str, list[pytest.TestReport]] = {}
        self._over = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._over:
            self._failed.setdefault(report.nodeid, []).append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Before the summary is written, and before the cache notes what failed."""
        self._over = True
        if exitstatus != pytest.ExitCode.TESTS_FAILED or not self._failed:
            return
        files = {id_.partition("::")[0] for id_ in self._failed}
        if len(files) > MOST_FILES:
            self._say(f"tests of {len(files)} files failed, more than {MOST_FILES}: no second try")
            return
        self._say(f"second try, alone: {len(self._failed)} that failed")
        again = self._run(list(self._failed))
        self._correct(again)
        failed = {report.nodeid for report in again if report.failed}
        self._unsteady = {id_: first for id_, first in self._failed.items() if id_ not in failed}
        if not failed:
            session.exitstatus = pytest.ExitCode.OK

    def _run(self, ids: list[str]) -> list[pytest.TestReport]:
        """Run these tests in a process of their own; what has no report there has failed still."""
        with tempfile.TemporaryDirectory(prefix="second-try-") as folder:
            file = Path(folder, "reports")
            command = [sys.executable, "-m", "pytest", "-p", __name__, "-p", "no:cacheprovider"]
            command += [f"{RECORD}={file}", f"--rootdir={self._config.rootpath}"]
            if self._config.inipath is not None:
                command.append(f"--config-file={self._config.inipath}")
            ended = subprocess.run(
                [*command, *ids], cwd=self._config.rootpath, capture_output=True, text=True, errors="replace"
            )
            lines = file.read_text("utf-8").splitlines() if file.exists() else []
        again = [self._read(line) for line in lines]
        missing = set(ids) - {report.nodeid for report in again if report.when == "teardown"}
        if missing:
            self._say(f"the second try ended with status {ended.returncode} before {len(missing)} tests")
            self._reporter.write(ended.stdout + ended.stderr)
        return [*again, *(first for id_ in sorted(missing) for first in self._failed[id_])]

    def _read(self, line: str) -> pytest.TestReport:
        report = self._config.hook.pytest_report_from_serializable(config=self._config, data=json.loads(line))
        assert isinstance(report, pytest.TestReport), line
        return report

    def _correct(self, again: Iterable[pytest.TestReport]) -> None:
        """Have all plugins take these reports in place of those of the first try."""
        for kind, reports in self._reporter.stats.items():
            tried = [report for report in reports if getattr(report, "nodeid", None) in self._failed]
            if kind in ("", "passed", "failed", "error", "skipped"):
                self._reporter.stats[kind] = [report for report in reports if report not in tried]
        for report in again:
            self._config.hook.pytest_runtest_logreport(report=report)

    @property
    def _reporter(self) -> TerminalReporter:
        found = self._config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(found, TerminalReporter)
        return found

    def _say(self, text: str) -> None:
        self._reporter.write_line("")
        self._reporter.write_sep("=", text)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> Generator[None]:
        """After all other parts of the summary: the unsteady tests, and how many they are."""
        yield
        if self._unsteady:
            terminalreporter.write_sep("=", "unsteady: failed at first, passed at the second try")
        for id_, reports in self._unsteady.items():
            terminalreporter.write_sep("_", id_)
            for report in reports:
                report.toterminal(terminalreporter._tw)
        for id_ in self._unsteady:
            terminalreporter.write_line(f"UNSTEADY {id_}", yellow=True)
        terminalreporter.write_line(f"unsteady: {len(self._unsteady)}")

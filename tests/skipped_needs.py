"""A line at the end of a run for each reason that tests were skipped for, with their number.

Most reasons are those of tests/needs.py: `needs slapd: apt-get install …`. tests/conftest.py takes the hook
from here.
"""

from collections import Counter

import pytest
from _pytest.terminal import TerminalReporter


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test was skipped, in the words that it gave."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Name what was missing, the one that cost most tests first."""
    reasons = Counter(map(reason_of, terminalreporter.stats.get("skipped", [])))
    if reasons:
        terminalreporter.section("skipped, for want of")
    for reason, tests in reasons.most_common():
        terminalreporter.line(f"{tests} {'test' if tests == 1 else 'tests'}: {reason}")

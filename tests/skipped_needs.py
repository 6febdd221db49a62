"""A line at the end of a run for each thing that tests were skipped for want of, with their number.

tests/conftest.py takes the hook from here. The reasons are those of tests/needs.py: `needs slapd: …`.
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
    reasons = map(reason_of, terminalreporter.stats.get("skipped", []))
    missing = Counter(reason for reason in reasons if reason.startswith("needs "))
    if missing:
        terminalreporter.section("skipped for want of something")
    for reason, tests in missing.most_common():
        terminalreporter.line(f"{tests} {'test' if tests == 1 else 'tests'}: {reason}")

"""In CI nothing may be skipped: the rule in conftest.py, tried on a suite of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = """
import pytest

def test_that_runs(): pass

@pytest.mark.skip(reason="no server")
def test_that_is_marked(): pass

def test_that_decides_itself(): pytest.skip("no server")

@pytest.mark.xfail(strict=True)
def test_that_is_known_to_fail(): assert False
"""


def run_suite(folder: Path, suite: str, ci: str) -> str:
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "test_suite.py").write_text(suite)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    environ = {**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, env=environ, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("ci", "summary"),
    [("true", "1 failed, 1 passed, 1 xfailed, 1 error"), ("", "1 passed, 2 skipped, 1 xfailed")],
)
def test_a_skip_fails_in_ci_and_only_there(tmp_path: Path, ci: str, summary: str) -> None:
    assert summary in run_suite(tmp_path, SUITE, ci)


def test_a_module_that_skips_itself_fails_in_ci(tmp_path: Path) -> None:
    suite = "import pytest\npytest.importorskip('no_such_module')\n"
    assert "1 error" in run_suite(tmp_path, suite, "true")

"""Spyne imports on every supported Python, in whatever order, and nothing else is disturbed.

Imports happen once a process, so each case runs in an interpreter of its own, with warnings as errors.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from hpwsn.door.soap import spyne_compatibility

ROOT = Path(__file__).parents[4]
SOURCES = ("hpwsn", "admin", "client", "scripts", "tests")
DOOR = ROOT / "hpwsn" / "door"

WORKING_SIX = """
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

class _SixMetaPathImporter:
    def find_spec(self, fullname, path, target=None):
        return ModuleSpec(fullname, self) if fullname == __name__ + ".moves" else None

    def create_module(self, spec):
        return ModuleType(spec.name)

    def exec_module(self, module):
        module.owner = "spyne"

__path__ = []
sys.meta_path.append(_SixMetaPathImporter())
"""


def run(code: str, *folders: Path) -> str:
    """What an interpreter prints that runs the code, with these folders before ours on its path."""
    places = ":".join(map(str, (*folders, ROOT, ROOT / "client", ROOT / "scripts")))
    command = [sys.executable, "-W", "error", "-c", code]
    ended = subprocess.run(command, env={"PYTHONPATH": places}, capture_output=True, text=True, timeout=50)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def spyne_with(folder: Path, six: str) -> Path:
    """A package `spyne` in the folder that carries this six."""
    package = folder / "spyne" / "util"
    package.mkdir(parents=True)
    (folder / "spyne" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "six.py").write_text(six)
    return folder


@pytest.mark.parametrize(
    "module",
    [
        "hpwsn.door.soap.contract",
        "hpwsn.door.soap.broker_operations",
        "hpwsn.node",
        "benchmarks.tools.spyne_path",
    ],
)
def test_every_way_to_spyne_is_without_a_warning(module: str) -> None:
    assert run(f"import sys, {module}; print('spyne.application' in sys.modules)") == "True"


def test_a_module_that_does_not_exist_is_looked_for_without_a_warning_after_spyne() -> None:
    code = (
        "import hpwsn.door, spyne\ntry: import no_such_module\nexcept ModuleNotFoundError: print('missing')"
    )
    assert run(code) == "missing"


def test_spyne_gets_the_installed_six_and_the_function_that_it_adds() -> None:
    code = """
import hpwsn.door, six, spyne.util.six as carried
from spyne.util.six.moves.urllib.parse import quote
from spyne.util.six.moves.collections_abc import Sequence
print(carried.text_type is six.text_type, quote is six.moves.urllib.parse.quote)
print(carried.get_function_name(quote), Sequence.__name__)
"""
    assert run(code) == "True True\nquote Sequence"


@pytest.mark.parametrize("before", ["import six, six.moves.urllib.parse", ""])
def test_those_who_import_six_themselves_see_it_unchanged(before: str) -> None:
    code = f"""
{before}
import hpwsn.door, spyne, six, six.moves.urllib.parse as parse
print(*(module.__spec__.name for module in (six, six.moves, parse)))
print(six.__name__, hasattr(six, "get_function_name"))
"""
    assert run(code) == "six six.moves six.moves.urllib.parse\nsix False"


def test_a_spyne_whose_own_six_works_is_left_alone(tmp_path: Path) -> None:
    code = """
import hpwsn.door, spyne.util.six
from spyne.util.six import moves
print(moves.owner, spyne.util.six.__file__)
"""
    folder = spyne_with(tmp_path, WORKING_SIX)
    assert run(code, folder) == f"spyne {folder}/spyne/util/six.py"


def test_a_spyne_without_a_six_of_its_own_is_left_alone(tmp_path: Path) -> None:
    code = """
import hpwsn.door, spyne.util
try:
    import spyne.util.six
except ModuleNotFoundError as error:
    print(error.name)
"""
    folder = spyne_with(tmp_path, "")
    (folder / "spyne" / "util" / "six.py").unlink()
    assert run(code, folder) == "spyne.util.six"


def test_preparing_again_adds_nothing() -> None:
    before = list(sys.meta_path)
    spyne_compatibility.prepare()
    assert sys.meta_path == before


def test_nothing_imports_spyne_before_the_door() -> None:
    """Modules of the door come after their package; every other module imports it first."""
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*.py")]
    others = [file for file in files if DOOR not in file.parents]
    assert not [file for file in others if first_import(file, "spyne") < first_import(file, "hpwsn.door")]


def first_import(file: Path, package: str) -> float:
    """The line of the first import of a package or of a module in it; infinite where there is none."""
    lines = [float("inf")]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if any(name == package or name.startswith(package + ".") for name in names):
            lines.append(node.lineno)
    return min(lines)

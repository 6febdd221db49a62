"""The module map of docs/architecture.md names every folder and every module of the tree, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("hpwsn", "client/hpwsn_client", "admin/hpwsn_admin")
MAP = ROOT / "docs" / "architecture.md"

_SECTION = re.compile(r"^## Module map\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^- \*\*`([\w/]+)/`\*\*(.*?)(?=^- |\Z)", re.MULTILINE | re.DOTALL)
_WORDS = re.compile(r"\([^)]*\)")
_MODULE = re.compile(r"`(\w+)`")


def holds_code(file: Path) -> bool:
    """Whether a file is a module: an `__init__` with only a docstring is not."""
    return file.name != "__init__.py" or len(ast.parse(file.read_text("utf-8")).body) > 1


def modules_of(root: Path, packages: Iterable[str] = PACKAGES) -> list[str]:
    """The modules of a checkout as paths without `.py`, sorted."""
    files = (file for package in packages for file in (root / package).rglob("*.py") if holds_code(file))
    return sorted(str(file.relative_to(root).with_suffix("")) for file in files)


def folders_of(root: Path, packages: Iterable[str] = PACKAGES) -> list[str]:
    """The packages of a checkout as paths, sorted."""
    files = (file for package in packages for file in (root / package).rglob("__init__.py"))
    return sorted(str(file.parent.relative_to(root)) for file in files)


def items_of(text: str) -> list[tuple[str, str]]:
    """The folders of a map, each with what stands behind it."""
    section = _SECTION.search(text)
    assert section, "there is no section 'Module map' that another section follows"
    return _ITEM.findall(section[1])


def mapped_in(text: str) -> list[str]:
    """The modules that a map names, sorted; a module that is named twice is there twice."""
    return sorted(
        f"{folder}/{module}"
        for folder, modules in items_of(text)
        for module in _MODULE.findall(_WORDS.sub("", modules))
    )


def difference(mapped: list[str], found: list[str]) -> list[str]:
    """What is wrong with a map, as sentences."""
    missing = [f"the map does not have {name}" for name in sorted(set(found) - set(mapped))]
    surplus = [f"the map has {name}, and the tree does not" for name in sorted(set(mapped) - set(found))]
    twice = [f"the map has {name} twice" for name in sorted({n for n in mapped if mapped.count(n) > 1})]
    return [*missing, *surplus, *twice]


def test_the_map_has_every_module_once_and_no_other() -> None:
    wrong = difference(mapped_in(MAP.read_text("utf-8")), modules_of(ROOT))
    assert not wrong, "\n".join(wrong)


def test_the_map_has_every_folder_once_and_no_other() -> None:
    folders = [folder for folder, _ in items_of(MAP.read_text("utf-8"))]
    wrong = difference(folders, folders_of(ROOT))
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in {
        "hpwsn/__init__.py": '"""The node."""\n',
        "hpwsn/errors.py": "",
        "hpwsn/door/__init__.py": '"""The doors."""\nimport sys\n',
        "hpwsn/door/gate.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def map_of(shared: str, doors: str) -> list[str]:
    return mapped_in(
        f"# Page\n\n## Module map\n\nText on `maps`.\n\n- **`hpwsn/`**, shared: {shared}.\n"
        f"- **`hpwsn/door/`**, doors: {doors}.\n\n## Tests\n\n- **`hpwsn/`**: `other`.\n"
    )


def test_a_package_with_code_is_a_module_and_one_with_a_docstring_is_not(checkout: Path) -> None:
    assert modules_of(checkout, ["hpwsn"]) == ["hpwsn/door/__init__", "hpwsn/door/gate", "hpwsn/errors"]


@pytest.mark.parametrize(
    ("shared", "doors", "wrong"),
    [
        ("`errors`", "`__init__` (for\n  `spyne`), `gate`", []),
        ("`errors`", "`__init__`", ["the map does not have hpwsn/door/gate"]),
        (
            "`errors`, `logs`",
            "`__init__`, `gate`",
            ["the map has hpwsn/logs, and the tree does not"],
        ),
        (
            "`errors`, `gate`",
            "`__init__`",
            ["the map does not have hpwsn/door/gate", "the map has hpwsn/gate, and the tree does not"],
        ),
        ("`errors`, `errors`", "`__init__`, `gate`", ["the map has hpwsn/errors twice"]),
    ],
)
def test_a_missing_a_surplus_a_misplaced_or_a_repeated_module_is_found(
    checkout: Path, shared: str, doors: str, wrong: list[str]
) -> None:
    assert difference(map_of(shared, doors), modules_of(checkout, ["hpwsn"])) == wrong

"""What the distributions say of the Pythons that they run on is what the scripts take."""

import re
from collections.abc import Mapping
from configparser import ConfigParser
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLASSIFIER = "Programming Language :: Python :: "


def supported() -> list[str]:
    """The Pythons that the scripts take, newest first."""
    text = (ROOT / "scripts" / "lib" / "python.sh").read_text("utf-8")
    found = re.search(r'^SUPPORTED_PYTHONS="([^"]+)"$', text, re.MULTILINE)
    assert found, 'scripts/lib/python.sh has no line SUPPORTED_PYTHONS="…"'
    return found[1].split()


def minor(version: str) -> int:
    major, _, number = version.partition(".")
    assert major == "3"
    return int(number)


@pytest.fixture(params=["setup.cfg", "client/setup.cfg"])
def distribution(request: pytest.FixtureRequest) -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / request.param, "utf-8")
    return parser


def test_the_scripts_name_each_supported_python_once_newest_first() -> None:
    numbers = [minor(version) for version in supported()]
    assert numbers == list(range(max(numbers), min(numbers) - 1, -1))


def test_the_classifiers_are_the_pythons_that_the_scripts_take(distribution: ConfigParser) -> None:
    lines = distribution["metadata"]["classifiers"].splitlines()
    named = [line.removeprefix(CLASSIFIER) for line in lines if line.startswith(CLASSIFIER + "3.")]
    assert named == supported()[::-1]


def test_python_requires_begins_and_ends_with_the_pythons_that_the_scripts_take(
    distribution: ConfigParser,
) -> None:
    newest, *_, oldest = supported()
    assert distribution["options"]["python_requires"] == f">={oldest},<3.{minor(newest) + 1}"


def test_the_readme_names_the_oldest_and_the_newest() -> None:
    newest, *_, oldest = supported()
    assert f"Python {oldest} to {newest}" in (ROOT / "README.md").read_text("utf-8")


def test_every_data_file_beside_the_modules_is_in_the_distribution() -> None:
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg", "utf-8")
    declared = {
        package: [pattern.strip() for pattern in patterns.split(",")]
        for package, patterns in parser["options.package_data"].items()
    }
    files = [file for file in (ROOT / "hpwsn").rglob("*") if is_data(file)]
    missing = [str(file.relative_to(ROOT)) for file in files if not is_declared(file, declared)]
    assert files and not missing


def is_data(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts and file.suffix != ".py"


def is_declared(file: Path, declared: Mapping[str, list[str]]) -> bool:
    """Whether a pattern of its package covers a file; `**` is for what lies in folders of data."""
    package = next(folder for folder in file.parents if (folder / "__init__.py").is_file())
    patterns = declared.get(".".join(package.relative_to(ROOT).parts), [])
    name = str(file.relative_to(package))
    return any(fnmatchcase(name, pattern) for pattern in patterns if "/" not in name or "**" in pattern)

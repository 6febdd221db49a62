"""The files of others that the page loads are the released ones, and a changed or unknown one is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lib import vendored_files as tool

ROOT = Path(__file__).parents[3]
VENDOR = ROOT / "hpwsn" / "page" / "static" / "vendor"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(VENDOR, tmp_path / "vendor"))


def test_every_vendored_file_is_listed_and_has_the_hash_of_its_release() -> None:
    assert tool.differences(VENDOR) == []


def test_every_package_has_its_licence_beside_it() -> None:
    packages = json.loads((VENDOR / "vendor.json").read_text("utf-8"))["packages"]
    assert [package["package"] for package in packages] == [package.name for package in tool.PACKAGES]
    for package in packages:
        assert package["licence"] in ("MIT", "Apache-2.0", "OFL-1.1")
        licences = [file["file"] for file in package["files"] if file["file"].startswith("licenses/")]
        assert len(licences) == 1 and (VENDOR / licences[0]).stat().st_size > 500


def test_a_changed_file_is_found(folder: Path) -> None:
    with (folder / "htm.module.js").open("a") as file:
        file.write(" ")
    assert tool.differences(folder) == ["htm.module.js is not the released file"]


def test_a_missing_file_is_found(folder: Path) -> None:
    (folder / "inter-latin.woff2").unlink()
    assert tool.differences(folder) == ["inter-latin.woff2 is missing"]


def test_a_file_that_nobody_lists_is_found(folder: Path) -> None:
    (folder / "licenses" / "extra.txt").write_text("?")
    assert tool.differences(folder) == ["licenses/extra.txt is not in vendor.json"]


def test_a_list_of_another_version_is_found(folder: Path) -> None:
    listed = folder / "vendor.json"
    listed.write_text(listed.read_text().replace('"3.1.1"', '"3.1.0"'))
    assert "vendor.json lacks htm.module.js of htm 3.1.1" in tool.differences(folder)
    assert "vendor.json has htm.module.js of htm 3.1.0" in tool.differences(folder)


@pytest.mark.parametrize("answer", [[{"filename": "a-1.tgz"}], {"a": {"filename": "a-1.tgz"}}])
def test_the_name_of_an_archive_is_read_from_old_and_new_npm(answer: object) -> None:
    assert tool._archive(answer) == "a-1.tgz"

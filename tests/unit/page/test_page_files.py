"""Which files of the page can be asked for, how they are kept, and what is never read."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpwsn.page import page_files
from hpwsn.page.page_files import JOINED, LONGEST_NAME, PageFile, PageFiles

SCRIPT = b"export const answer = 42;\n" * 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A page with a script, and a file beside the page that nobody may read."""
    static = tmp_path / "static"
    (static / "app" / "views").mkdir(parents=True)
    (static / "app" / "main.js").write_bytes(SCRIPT)
    (static / "app" / "views" / "topics.js").write_bytes(b"1;")
    (static / "app" / "font.woff2").write_bytes(bytes(1000))
    (static / "app" / ".hidden.js").write_bytes(b"secret")
    (static / "app" / "main.py").write_bytes(b"secret")
    (tmp_path / "secret.js").write_bytes(b"secret")
    return static


async def found(folder: Path, name: str) -> PageFile:
    file = await PageFiles(folder).find(name)
    assert file is not None, name
    return file


async def test_a_script_has_its_type_and_a_compressed_form(folder: Path) -> None:
    file = await found(folder, "app/main.js")
    assert (file.content, file.type) == (SCRIPT, "text/javascript; charset=utf-8")
    assert file.compressed is not None
    assert gzip.decompress(file.compressed) == SCRIPT


COMMENTED = b"""// What the module owns.
import { html } from "./html.js"; // stays
/** One line. */
const url = "http://example.org"; /* stays */

/**
 * Several * lines.
 **/
  // Indented.
export const glob = "/**/*.js";
"""
WITHOUT = b"""
import { html } from "./html.js"; // stays

const url = "http://example.org"; /* stays */





export const glob = "/**/*.js";
"""


@pytest.mark.parametrize("end", [b"", b"\n"])
async def test_own_scripts_are_sent_without_comments_and_keep_their_lines(folder: Path, end: bytes) -> None:
    (folder / "vendor").mkdir()
    for name in ("app/main.js", "vendor/main.js", "app/main.css"):
        (folder / name).write_bytes(COMMENTED + end)
    assert (await found(folder, "app/main.js")).content == WITHOUT + end
    for name in ("vendor/main.js", "app/main.css"):
        assert (await found(folder, name)).content == COMMENTED + end


async def test_fonts_and_what_gzip_makes_larger_have_no_compressed_form(folder: Path) -> None:
    font, tiny = await found(folder, "app/font.woff2"), await found(folder, "app/views/topics.js")
    assert (font.type, font.compressed, tiny.compressed) == ("font/woff2", None, None)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.js",
        "app/../../secret.js",
        "app/..%2f..%2fsecret.js",
        "app\\..\\..\\secret.js",
        "/etc/hosts.txt",
        "app//main.js",
        "./app/main.js",
        "app/main.js\0.txt",
        "app/main.js\n",
        "app/.hidden.js",
        "app/main..js",
        "app/main.py",
        "app/main",
        "app",
        "app/",
        "",
        "ä.js",
        "app/missing.js",
        "app/main.js/main.js",
        "a" * LONGEST_NAME + ".js",
    ],
)
async def test_no_other_name_leads_to_a_file(folder: Path, name: str) -> None:
    assert await PageFiles(folder).find(name) is None


async def test_a_folder_that_is_named_like_a_file_is_none(folder: Path) -> None:
    (folder / "app" / "lib.js").mkdir()
    assert await PageFiles(folder).find("app/lib.js") is None


async def test_a_file_is_read_and_compressed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Path] = []

    def load(paths: Sequence[Path], name: str) -> PageFile:
        loaded.extend(paths)
        return PageFile(b"", None, name, "")

    monkeypatch.setattr(page_files, "load", load)
    files = PageFiles(folder)
    assert await files.find("app/main.js") is await files.find("app/main.js")
    assert loaded == [folder / "app" / "main.js"]


async def test_a_changed_file_is_read_again_without_a_restart(folder: Path) -> None:
    files, path = PageFiles(folder), folder / "app" / "main.js"
    before = await files.find("app/main.js")
    path.write_bytes(SCRIPT.replace(b"42", b"43"))
    os.utime(path, ns=(1, 1))
    after = await files.find("app/main.js")
    assert before and after
    assert b"43" in after.content
    assert before.digest != after.digest


async def test_the_digest_depends_on_the_content_only(folder: Path) -> None:
    before = await found(folder, "app/main.js")
    os.utime(folder / "app" / "main.js", ns=(1, 1))
    after = await found(folder, "app/main.js")
    assert (before.digest, before.compressed) == (after.digest, after.compressed)


async def test_a_removed_file_is_gone(folder: Path) -> None:
    files = PageFiles(folder)
    assert await files.find("app/main.js")
    (folder / "app" / "main.js").unlink()
    assert await files.find("app/main.js") is None


async def test_the_files_of_the_package_are_found_without_a_folder() -> None:
    index = await PageFiles().find("index.html")
    assert index is not None
    assert (index.type, index.content[:15]) == ("text/html; charset=utf-8", b"<!doctype html>")


async def test_joined_files_are_one_answer_that_changes_with_each_of_them(folder: Path) -> None:
    [(name, parts)] = JOINED.items()
    (folder / "styles").mkdir()
    files = PageFiles(folder)
    for number, part in enumerate(parts):
        assert await files.find(name) is None
        (folder / part).write_bytes(f"p{number} {{}}\n".encode())
    before = await files.find(name)
    assert before is not None
    assert before.content == b"p0 {}\np1 {}\np2 {}\np3 {}\np4 {}\n"
    assert before.type == "text/css; charset=utf-8"
    (folder / parts[1]).write_bytes(b"changed {}\n")
    after = await files.find(name)
    assert after is not None
    assert after.content == b"p0 {}\nchanged {}\np2 {}\np3 {}\np4 {}\n"
    assert after.digest != before.digest


async def test_joined_files_are_those_of_the_package() -> None:
    for name in JOINED:
        file = await PageFiles().find(name)
        assert file is not None
        assert b"@import" not in file.content, "it would be ignored behind another rule"

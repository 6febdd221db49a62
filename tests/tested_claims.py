"""Tables of the documents whose rows name tests in their last cell, and whether these tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.documents import ROOT, prose_of


def rows_of(page: Path, section: str) -> dict[str, list[str]]:
    """What the rows of a section are about, each with the tests that it names."""
    found: dict[str, list[str]] = {}
    inside = False
    for number, line in prose_of(page):
        if line.startswith("## "):
            inside = line[3:] == section
        elif inside and line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            subject = cells[0].strip("` ")
            assert subject not in found, f"{page.name}:{number}: {subject} has two rows"
            found[subject] = re.findall(r"`([^`]+)`", cells[-1])
    return found


@cache
def named_in(path: Path) -> frozenset[str]:
    """The tests of a file as pytest names them, without parameters."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}::{each.name}" for each in methods}
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    return (ROOT / path).is_file() and name in named_in(ROOT / path)

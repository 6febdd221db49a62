"""How results of `hpwsn dtn` are shown and written: a table of means, and files in a folder.

A file or a folder that cannot be written is an error of one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpwsn.errors import HpwsnError

if TYPE_CHECKING:
    from hpwsn.dtn.figures.run_statistics import Statistic

DECIMALS = {"delivery": 1, "copies": 1, "delay": 0, "life": 2, "transmissions": 1, "holders": 1}
"""Digits behind the point of each measure."""


def statistics_table(results: Mapping[str, Mapping[str, Statistic | None]], units: Mapping[str, str]) -> str:
    """Rows of protocols, columns of measures."""
    rows = [["protocol", *(f"{name} ({unit})" for name, unit in units.items())]]
    for protocol, found in results.items():
        rows.append([protocol, *(cell(name, found[name]) for name in units)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )


def cell(name: str, one: Statistic | None) -> str:
    """A mean with its deviation, if it has one; a dash where nothing was measured."""
    if one is None:
        return "-"
    mean = f"{one.mean:.{DECIMALS[name]}f}"
    return f"{mean} ± {one.deviation:.{DECIMALS[name]}f}" if one.deviation else mean


def make_folder(folder: Path) -> None:
    """Make a folder for results; HpwsnError if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HpwsnError(f"cannot make the folder {folder}: {error.strerror}; choose another one") from None


def write_text(file: Path, text: str) -> None:
    """Write a result; HpwsnError if it cannot be written."""
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise HpwsnError(f"cannot write {file}: {error.strerror}") from None

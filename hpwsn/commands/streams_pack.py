"""`hpwsn streams pack`: packs the environment that the workers of a Spark cluster unpack.

It needs the libraries of the extra `spark`, but neither Java nor a running Spark.
"""

import argparse
import sys
from pathlib import Path

from hpwsn.commands.operations.operator_api import add_command
from hpwsn.errors import HpwsnError

_EXAMPLES = """\
  hpwsn streams pack --out environment.tar.gz
  hpwsn streams pack --out environment.tar.gz --add scipy --add rules.py --force
  hpwsn streams run traffic.toml --archive environment.tar.gz --master spark://spark.example.org:7077
"""
_MEBIBYTE = 1 << 20


def add_pack_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the action `pack` to the command `streams`."""
    about = "pack HPwsn and its libraries for the workers of a Spark cluster"
    parser = add_command(actions, "pack", about, _EXAMPLES, asks_node=False)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the archive, *.tar.gz")
    parser.add_argument(
        "--add",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that functions import, by its name or path; may be repeated",
    )
    parser.add_argument("--force", action="store_true", help="replace the archive if it exists")
    parser.set_defaults(handler=_pack)


def _pack(arguments: argparse.Namespace) -> int:
    from hpwsn.streams.deployment.packed_files import find_files
    from hpwsn.streams.deployment.worker_archive import write_archive

    out: Path = arguments.out
    if out.exists() and not arguments.force:
        raise HpwsnError(f"{out} exists; replace it with --force, or choose another file")
    packed = find_files(arguments.add)
    progress = _Progress(packed.size)
    manifest = write_archive(out, packed, progress.show)
    progress.end()
    for name, version in sorted({"hpwsn": manifest.hpwsn, **manifest.packages}.items()):
        print(f"  {name} {version}")
    print(f"{out}: {_mebibytes(out.stat().st_size)} for Python {manifest.python} on {manifest.machine}")
    return 0


class _Progress:
    """One line on a terminal that shows how much is packed; nothing if the output is not a terminal."""

    def __init__(self, total: int) -> None:
        self._total, self._shown = total, -1
        self._visible = sys.stderr.isatty()

    def show(self, done: int) -> None:
        percent = 100 * done // max(1, self._total)
        if self._visible and percent != self._shown:
            self._shown = percent
            print(f"\rpacking {_mebibytes(self._total)}: {percent} %", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._visible:
            print(file=sys.stderr)


def _mebibytes(size: int) -> str:
    return f"{size / _MEBIBYTE:.0f} MiB"

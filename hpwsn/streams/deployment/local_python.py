"""The Python that a local Spark starts, and why it starts faster than Spark's own choice.

Spark puts its `pyspark.zip` first on the path of each Python process. The zip has sources only, so every
process compiles PySpark again, which takes longer than all other imports together, and a job starts several
of them before its first output. PySpark is installed on this machine as a folder with compiled modules. The
launcher here removes the zips from the path, and the process imports the folder instead.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

NO_LOOKUP = "no-lookup-of-data-sources"
"""A value of PYSPARK_DRIVER_PYTHON with which Spark does not search for data sources by their package names.

The search is one more Python process at the start of a job, which registers its data sources itself. Spark
uses the variable for that search, and to run programs that are given to spark-submit.
"""
_LAUNCHER = """\
#!/bin/sh
PYTHONPATH=${{PYTHONPATH#*/pyspark.zip:}}
PYTHONPATH=${{PYTHONPATH#*/py4j-*-src.zip:}}
export PYTHONPATH
exec {python} "$@"
"""


def local_python() -> str:
    """The path of a launcher of this Python, which is removed at exit; this Python if it would not help."""
    if not _is_folder("pyspark") or not _is_folder("py4j"):
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="hpwsn-python-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    launcher = write_launcher(folder / "python", sys.executable)
    # Not so if the temporary folder is mounted with `noexec`.
    return str(launcher) if os.access(launcher, os.X_OK) else sys.executable


def write_launcher(file: Path, python: str) -> Path:
    """Write an executable that starts a Python without Spark's zips on its path."""
    file.write_text(_LAUNCHER.format(python=shlex.quote(python)), "utf-8")
    file.chmod(0o755)
    return file


def _is_folder(package: str) -> bool:
    """Whether a package is installed as a folder, not in a zip."""
    spec = find_spec(package)
    return spec is not None and spec.origin is not None and Path(spec.origin).is_file()

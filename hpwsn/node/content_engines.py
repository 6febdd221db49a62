"""Engines for content groups: they start with the numpy kernel and switch to the compiled one when ready.

It owns the setting `matching.compiled` and the thread that loads the kernel. numpy is loaded with the first
engine, numba with the first large one, so that a node without content filters loads neither. Compilation
takes seconds and runs in its own process, since a thread would compete with the event loop for the GIL. The
process caches the kernel on disk, and the thread loads it. If that fails, the numpy kernel stays in use.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpwsn.matching.language.reference_engine import Engine

if TYPE_CHECKING:
    from hpwsn.matching.engine.kernels import Kernel
    from hpwsn.matching.engine.segments import Floats, RowNumbers, Segment

log = logging.getLogger(__name__)

AUTO, NEVER = "auto", "never"
LONGEST = 300.0
"""Timeout of the compilation in seconds."""

_COMPILE = """
import sys
from pathlib import Path
from hpwsn.node.content_engines import compiled_kernel
compiled_kernel(*map(Path, sys.argv[1:]))
"""


class BrokerEngines:
    """Creates engines whose kernel can be replaced at run time."""

    def __init__(self, compiled: str = AUTO, cache: Path | None = None) -> None:
        self._compiled = compiled
        self._cache = cache
        self._kernel: Kernel | None = None
        self._thread: threading.Thread | None = None

    def make(self) -> Engine:
        """A new engine."""
        from hpwsn.matching.engine.default_engine import DefaultEngine
        from hpwsn.matching.engine.kernels import match_numpy

        if self._kernel is None:
            self._kernel = match_numpy
        return DefaultEngine(self._match)

    def _match(self, segment: Segment, values: Floats) -> RowNumbers:
        return self._kernel(segment, values)  # type: ignore[misc]

    def prepare(self) -> None:
        """Start the compilation, if the setting allows it and it has not started."""
        if self._compiled == AUTO and self._thread is None:
            self._thread = threading.Thread(target=self._warm_up, name="matching-kernel", daemon=True)
            self._thread.start()

    def _warm_up(self) -> None:
        try:
            _compile(self._cache)
            kernel = compiled_kernel(self._cache)
        except ImportError:
            log.info("content matching uses numpy; install numba (the extra `fast`) for higher speed")
        except Exception:
            log.exception("the matching kernel could not be compiled; content matching uses numpy")
        else:
            self._kernel = kernel
            log.info("content matching now uses the compiled kernel")


def _compile(cache: Path | None) -> None:
    """Compile the kernel in another process and cache it on disk; fast if it is already cached."""
    if find_spec("numba") is None:
        raise ImportError("numba")
    given = [] if cache is None else [str(cache)]
    command = [sys.executable, "-c", _COMPILE, *given]
    # A new session keeps Ctrl-C, which stops the node, from the compiler.
    ended = subprocess.run(command, timeout=LONGEST, capture_output=True, text=True, start_new_session=True)
    if ended.returncode:
        raise RuntimeError(
            f"the compiler process exited with status {ended.returncode}: {ended.stderr[-500:]}"
        )


def compiled_kernel(cache: Path | None = None) -> Kernel:
    """The compiled kernel; takes seconds if it is not cached.

    The cache is beside the package, or in the given folder if the package's folder is read-only.
    """
    import numba

    config: Any = numba.config
    beside = Path(__file__).parents[1] / "matching" / "engine"
    if cache is not None and not config.CACHE_DIR and not os.access(beside, os.W_OK):
        config.CACHE_DIR = str(cache)
    from hpwsn.matching.engine.compiled_kernel import match_compiled, warm_up

    warm_up()
    return match_compiled

"""Where content groups get their engines: numpy's kernel at once, the compiled one when a thread has made it.

Owns the choice (`matching.compiled`) and the thread. numpy is loaded with the first engine, numba with the
first one that is large, so that a node without content filters carries neither. Compiling takes seconds and
is done by a process of its own, since a thread would take turns with the event loop; it leaves its result on
disk, from where the thread loads it. Where that cannot be done, numpy's kernel goes on.
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
"""Seconds that compiling may take."""

_COMPILE = """
import sys
from pathlib import Path
from hpwsn.node.content_engines import compiled_kernel
compiled_kernel(*map(Path, sys.argv[1:]))
"""


class BrokerEngines:
    """Makes engines whose kernel can change under them."""

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
        """Have the compiled kernel made, if that is wanted and not under way."""
        if self._compiled == AUTO and self._thread is None:
            self._thread = threading.Thread(target=self._warm_up, name="matching-kernel", daemon=True)
            self._thread.start()

    def _warm_up(self) -> None:
        try:
            _compile(self._cache)
            kernel = compiled_kernel(self._cache)
        except ImportError:
            log.info("content is matched by numpy; with numba (the extra `fast`) it is faster")
        except Exception:
            log.exception("no kernel could be compiled; content is matched by numpy")
        else:
            self._kernel = kernel
            log.info("content is matched by a compiled kernel from now on")


def _compile(cache: Path | None) -> None:
    """Have a process compile the kernel and keep it on disk; soon done where it is there already."""
    if find_spec("numba") is None:
        raise ImportError("numba")
    given = [] if cache is None else [str(cache)]
    command = [sys.executable, "-c", _COMPILE, *given]
    # In a session of its own: Ctrl-C ends the node and is no error of the compiler's.
    ended = subprocess.run(command, timeout=LONGEST, capture_output=True, text=True, start_new_session=True)
    if ended.returncode:
        raise RuntimeError(f"the process that compiles ended with {ended.returncode}: {ended.stderr[-500:]}")


def compiled_kernel(cache: Path | None = None) -> Kernel:
    """The compiled kernel, ready to run; takes seconds where it has to compile.

    It is kept beside the package, or in the given folder where nothing can be written there.
    """
    import numba

    config: Any = numba.config
    beside = Path(__file__).parents[1] / "matching" / "engine"
    if cache is not None and not config.CACHE_DIR and not os.access(beside, os.W_OK):
        config.CACHE_DIR = str(cache)
    from hpwsn.matching.engine.compiled_kernel import match_compiled, warm_up

    warm_up()
    return match_compiled

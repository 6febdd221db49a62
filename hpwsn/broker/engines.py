"""Where content groups get their engines: numpy's kernel at once, the compiled one when a thread has made it.

Owns the choice (`matching.compiled`) and the thread. numpy is loaded with the first engine, numba with the
first one that is large, so that a node without content filters carries neither. Compiling takes seconds and
nobody waits for it; where it cannot be done, numpy's kernel goes on.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from hpwsn.matching.port import Engine

if TYPE_CHECKING:
    from hpwsn.matching.kernels import Kernel
    from hpwsn.matching.segments import Numbers, Rows, Segment

log = logging.getLogger(__name__)

AUTO, NEVER = "auto", "never"


class BrokerEngines:
    """Makes engines whose kernel can change under them."""

    def __init__(self, compiled: str = AUTO) -> None:
        self._compiled = compiled
        self._kernel: Kernel | None = None
        self._thread: threading.Thread | None = None

    def make(self) -> Engine:
        """A new engine."""
        from hpwsn.matching.indexed import IndexedEngine
        from hpwsn.matching.kernels import match_numpy

        if self._kernel is None:
            self._kernel = match_numpy
        return IndexedEngine(self._match)

    def _match(self, segment: Segment, values: Numbers) -> list[Rows]:
        return self._kernel(segment, values)  # type: ignore[misc]

    def prepare(self) -> None:
        """Have the compiled kernel made, if that is wanted and not under way."""
        if self._compiled == AUTO and self._thread is None:
            self._thread = threading.Thread(target=self._warm_up, name="matching-kernel", daemon=True)
            self._thread.start()

    def _warm_up(self) -> None:
        try:
            kernel = compiled_kernel()
        except ImportError:
            log.info("content is matched by numpy; with numba (the extra `fast`) it is faster")
        except Exception:
            log.exception("no kernel could be compiled; content is matched by numpy")
        else:
            self._kernel = kernel
            log.info("content is matched by a compiled kernel from now on")


def compiled_kernel() -> Kernel:
    """The compiled kernel, ready to run; takes seconds where it has to compile."""
    from hpwsn.matching.compiled import match_compiled, warm_up

    warm_up()
    return match_compiled

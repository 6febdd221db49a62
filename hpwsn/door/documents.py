"""Threads for documents that may be large: a tree of a million topics takes seconds to write.

They are few and their own: whoever asks for many documents at once waits in line, and does not take the
threads in which the event loop looks up the addresses of consumers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_threads = ThreadPoolExecutor(2, thread_name_prefix="documents")


async def in_thread(write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """What a function gives that only looks at the state of the node, and does so from another thread."""
    return await asyncio.get_running_loop().run_in_executor(_threads, lambda: write(*args, **kwargs))

"""Compiles the simulator's functions with numba, if it is installed; without it they run as they are.

A function is compiled together with all that it calls, under a name that has a digest of all of them. So
what numba keeps on disk is used again only while none of the functions has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

_OURS = "hpwsn.dtn."
_OPTIONS = MappingProxyType({"_nrt": False})
"""Without counts of references to arrays, which would cost many times what the functions do. They must not
make arrays."""


def compiled(function: Callable[..., None]) -> Callable[..., None]:
    """The function compiled at its first call, which takes seconds; the function itself without numba."""
    try:
        import numba
    except ImportError:
        return function
    assert isinstance(function, FunctionType)
    needed = called_by(function)
    digest = digest_of(needed)
    replaced: dict[FunctionType, Any] = {}
    spaces: dict[int, dict[str, Any]] = {}
    for one in needed:
        space = spaces.setdefault(id(one.__globals__), dict(one.__globals__))
        again = FunctionType(one.__code__, space, one.__name__)
        again.__qualname__ = f"{one.__name__}_{digest}"
        replaced[one] = _just_in_time(numba, again)
    for space in spaces.values():
        for name, value in space.items():
            if isinstance(value, FunctionType) and value in replaced:
                space[name] = replaced[value]
    found: Callable[..., None] = replaced[function]
    return found


def _just_in_time(numba: ModuleType, function: FunctionType) -> Any:
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:
        # numba can write neither beside the file nor to the user's cache.
        return numba.njit(**_OPTIONS)(function)


def called_by(function: FunctionType) -> list[FunctionType]:
    """The function, and those of ours that it calls, directly or not, each once."""
    found = [function]
    for one in found:
        for name in one.__code__.co_names:
            value = one.__globals__.get(name)
            if isinstance(value, FunctionType) and value.__module__.startswith(_OURS) and value not in found:
                found.append(value)
    return found


def digest_of(functions: list[FunctionType]) -> str:
    """A digest of what the functions do, with the numbers and the tuples that they use."""
    state = hashlib.sha256(repr(_OPTIONS).encode())
    for one in functions:
        code: CodeType = one.__code__
        state.update(repr((one.__name__, code.co_code, code.co_consts, code.co_names)).encode())
        for name in code.co_names:
            value = one.__globals__.get(name)
            if isinstance(value, int | float):
                state.update(repr((name, value)).encode())
    return state.hexdigest()[:12]

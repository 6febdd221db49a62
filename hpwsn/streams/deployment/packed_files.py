"""Finds the files that Spark workers need: HPwsn, the libraries that it imports there, and user modules.

Spark and its Python files are not among them: each worker has its own. A library is packed as its
distribution records it, with all distributions that it requires. HPwsn itself, and modules that do not belong
to a distribution, are packed as folders, so that an editable installation works too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from importlib.util import cache_from_source, find_spec
from pathlib import Path, PurePosixPath

from hpwsn.errors import HpwsnError

OURS = ("hpwsn", "hpwsn_client")
LIBRARIES = ("lark", "lxml", "numpy", "protobuf", "pyarrow")
"""Distributions that HPwsn imports on workers."""
BACKBONE = "stomp.py"
"""Packed if it is installed; workers import it only with `--backbone`."""
ON_WORKERS = frozenset({"pyspark", "py4j"})
"""Distributions that every worker has from its own Spark."""
_UNUSED_FOLDERS = frozenset({"tests", "include", "__pycache__"})
_UNUSED_SUFFIXES = frozenset({".a", ".c", ".cpp", ".h", ".pxd", ".pxi", ".pyi", ".pyx"})
_REQUIREMENT = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Packed:
    """Files by their paths in the archive, and the names and versions of distributions."""

    files: Mapping[str, Path]
    packages: Mapping[str, str]

    @property
    def size(self) -> int:
        """The number of bytes of all files."""
        return sum(file.stat().st_size for file in self.files.values())


def find_files(added: Sequence[str] = ()) -> Packed:
    """The files of the environment; `added` are names of modules, or paths of modules and folders."""
    needed = {one.name: one for one in _closure([*LIBRARIES, *_installed(BACKBONE)])}
    files: dict[str, Path] = {}
    for name in OURS:
        files |= _of_module(name)
    for name in added:
        if is_path(name):
            files |= _of_path(Path(name))
        elif found := _distributions_of(name):
            needed |= {one.name: one for one in _closure(found)}
        else:
            files |= _of_module(name)
    for one in needed.values():
        files |= _of_distribution(one)
    return Packed(_with_bytecode(files), {one.name: one.version for one in needed.values()})


def is_path(name: str) -> bool:
    """Whether an argument names a file or folder, and not a module."""
    return "/" in name or name.endswith(".py")


def _installed(*names: str) -> list[str]:
    return [name for name in names if _found(name)]


def _found(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _closure(names: Iterable[str]) -> Iterator[Distribution]:
    """The distributions, and all that they require; without those for optional features."""
    seen: set[str] = set(ON_WORKERS)
    waiting = list(names)
    required = set(waiting)
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue
        seen.add(key)
        one = _found(name)
        if one is None:
            if name in required:
                raise HpwsnError(f"{name} is not installed; in the checkout, pip install ./client '.[spark]'")
            continue
        yield one
        waiting += [_name(text) for text in one.requires or () if "extra ==" not in text]


def _name(requirement: str) -> str:
    found = _REQUIREMENT.match(requirement)
    return found[0] if found else requirement


def _distributions_of(module: str) -> list[str]:
    """The distributions that install a module, by the name that an import uses."""
    top = module.partition(".")[0]
    return [] if top in OURS else packages_distributions().get(top, [])


def _of_distribution(one: Distribution) -> dict[str, Path]:
    if one.files is None:
        raise HpwsnError(f"{one.name} does not record its files; install it with pip, then pack again")
    found = {}
    for file in one.files:
        # Scripts lie outside of the folder of the modules.
        if ".." not in file.parts and _is_used(file):
            found[file.as_posix()] = Path(str(file.locate()))
    return found


def _of_module(name: str) -> dict[str, Path]:
    try:
        spec = find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.submodule_search_locations:
        return _of_folders(map(Path, spec.submodule_search_locations))
    if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
        return {Path(spec.origin).name: Path(spec.origin)}
    raise HpwsnError(f"--add {name}: there is no such module; give an importable name, or the path of a file")


def _of_path(path: Path) -> dict[str, Path]:
    if path.is_dir():
        return _of_folders([path.resolve()])
    if path.is_file():
        return {path.name: path.resolve()}
    raise HpwsnError(f"--add {path}: there is no such file or folder")


def _of_folders(folders: Iterable[Path]) -> dict[str, Path]:
    return {
        name.as_posix(): file
        for folder in folders
        for file in sorted(folder.rglob("*"))
        if file.is_file() and _is_used(name := PurePosixPath(file.relative_to(folder.parent)))
    }


def _is_used(name: PurePosixPath) -> bool:
    return name.suffix not in _UNUSED_SUFFIXES and _UNUSED_FOLDERS.isdisjoint(name.parts[:-1])


def _with_bytecode(files: Mapping[str, Path]) -> dict[str, Path]:
    """The files with their compiled forms, which spare each worker the compilation at its start."""
    compiled = {}
    for name, file in files.items():
        if file.suffix == ".py" and (bytecode := Path(cache_from_source(str(file)))).is_file():
            compiled[cache_from_source(name)] = bytecode
    return {**files, **compiled}

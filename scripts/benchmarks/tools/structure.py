"""The structure of a checkout, from its files and syntax trees: folders, imports, names, sizes, type checks.

A module is a file of one of the packages; an `__init__.py` without code is not one. A folder is the directory
of a module. A folder imports another one where one of its modules does at run time, in a function as well.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("hpwsn", "client/hpwsn_client", "admin/hpwsn_admin")
LARGEST, MOST, SHORT = 5, 15, 50
"""Folders that are named, modules that a folder may have, and lines below which a module is short."""
CARRIERS = frozenset({"Run", "Batch", "EncodedRun", "Notification", "Encoded"})
"""The types in which notifications travel."""


@dataclass(frozen=True, slots=True)
class Structure:
    """What is counted, and the folders and files behind some of the numbers."""

    numbers: Mapping[str, int]
    largest: Mapping[str, int]
    cycles: tuple[tuple[str, ...], ...]
    same_names: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Module:
    """One file, its path from the root of the checkout."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str:
        """The directory of the file."""
        return str(self.path.parent)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing but a docstring."""
        return len(self.tree.body) == (ast.get_docstring(self.tree) is not None)

    @property
    def lines(self) -> list[str]:
        """All of its lines."""
        return self.text.splitlines()


def structure_of(checkout: Path) -> Structure:
    """The structure of all packages of a checkout."""
    files = list(_files(checkout))
    modules = [file for file in files if file.path.name != "__init__.py" or not file.is_empty]
    folders = Counter(module.folder for module in modules)
    cycles = find_cycles(_folder_imports(files))
    same_names = _same_names(modules)
    lines = [line.strip() for file in files for line in file.lines]
    numbers = {
        "modules": len(modules),
        "folders": len(folders),
        f"folders with more than {MOST} modules": sum(size > MOST for size in folders.values()),
        "folders in cycles": sum(map(len, cycles)),
        "basenames used more than once": len(same_names),
        f"modules under {SHORT} lines": sum(len(module.lines) < SHORT for module in modules),
        "lines": len(lines),
        "lines that are neither blank nor a comment": sum(bool(line) and line[0] != "#" for line in lines),
        "isinstance checks of notification types": sum(count_type_checks(file.tree) for file in files),
    }
    return Structure(numbers, dict(folders.most_common(LARGEST)), cycles, same_names)


def find_cycles(graph: Mapping[str, Set[str]]) -> tuple[tuple[str, ...], ...]:
    """The strongly connected components of more than one node, the largest first."""
    reached = {node: _reach(graph, node) for node in graph}
    components = {
        frozenset({node, *(other for other in there if node in reached.get(other, ()))})
        for node, there in reached.items()
    }
    found = [tuple(sorted(component)) for component in components if len(component) > 1]
    return tuple(sorted(found, key=lambda component: (-len(component), component)))


def _reach(graph: Mapping[str, Set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        if (node := waiting.pop()) not in found:
            found.add(node)
            waiting.extend(graph.get(node, ()))
    return found


def imported_names(node: ast.AST, package: str) -> Iterator[str]:
    """What code imports at run time; `from a import b` is `a.b`, and `package` is what a dot stands for."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            yield from imported_names(ast.Module(child.orelse, []), package)
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - child.level] if child.level else []
            base = ".".join([*above, *([child.module] if child.module else [])])
            yield from (f"{base}.{alias.name}" for alias in child.names)
        yield from imported_names(child, package)


def count_type_checks(tree: ast.AST) -> int:
    """The calls of isinstance that name a type of CARRIERS."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and len(node.args) == 2
        and not CARRIERS.isdisjoint(_names(node.args[1]))
        for node in ast.walk(tree)
    )


def _names(expression: ast.AST) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _files(checkout: Path) -> Iterator[Module]:
    for package in PACKAGES:
        root = (checkout / package).parent
        for file in sorted((checkout / package).rglob("*.py")):
            parts = file.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = file.read_text("utf-8")
            yield Module(file.relative_to(checkout), name, text, ast.parse(text))


def _folder_imports(files: list[Module]) -> dict[str, set[str]]:
    by_name = {file.name: file.folder for file in files}
    graph: dict[str, set[str]] = {file.folder: set() for file in files}
    for file in files:
        if file.path.name == "__main__.py":
            continue  # an entry point imports what it starts, and nothing imports it
        is_package = file.path.name == "__init__.py"
        for name in imported_names(file.tree, file.name if is_package else file.name.rpartition(".")[0]):
            # A name that is not a module is defined in what stands before it.
            target = by_name.get(name) or by_name.get(name.rpartition(".")[0])
            if target and target != file.folder:
                graph[file.folder].add(target)
    return graph


def _same_names(modules: list[Module]) -> dict[str, tuple[str, ...]]:
    paths: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        if not module.path.name.startswith("__"):
            paths[module.path.stem].append(str(module.path))
    return {name: tuple(found) for name, found in sorted(paths.items()) if len(found) > 1}

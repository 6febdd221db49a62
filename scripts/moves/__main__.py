"""Moves and merges the modules of the tree, and rewrites every reference to them: python -m moves, in scripts/."""

import ast
import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

from moves.table import SYMBOLS, merges

ROOT = Path(__file__).parents[2]
ROOTS = {"hpwsn": ROOT, "hpwsn_client": ROOT / "client", "hpwsn_admin": ROOT / "admin"}
MERGES = merges()
MOVED = {old: new for new, olds in MERGES.items() for old in olds}


def path_of(module: str) -> Path:
    return ROOTS[module.partition(".")[0]].joinpath(*module.split(".")).with_suffix(".py")


def modules() -> set[str]:
    found = set()
    for package, root in ROOTS.items():
        for file in (root / package).rglob("*.py"):
            parts = file.relative_to(root).with_suffix("").parts
            found.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


ALL = modules()


def name_of(file: Path) -> str:
    for package, root in ROOTS.items():
        if file.is_relative_to(root / package):
            parts = file.relative_to(root).with_suffix("").parts
            return ".".join(parts)
    return ""


def imports_rewritten(text: str, module: str) -> str:
    """The text with every import of a moved module from its new place, and none relative."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    edits = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            new = _from(node, module)
        elif isinstance(node, ast.Import):
            new = [
                f"import {MOVED.get(a.name, a.name)}" + (f" as {a.asname}" if a.asname else "")
                for a in node.names
            ]
        else:
            continue
        pad = " " * node.col_offset
        edits.append((node.lineno, node.end_lineno or node.lineno, [f"{pad}{each}\n" for each in new]))
    found, at = [], 0
    for first, last, new in sorted(edits):
        tail = lines[last - 1].partition("#")[2]
        if tail and len(new) == 1:
            new = [new[0].rstrip("\n") + "  #" + tail]
        found += [text_rewritten("".join(lines[at : first - 1])), *new]
        at = last
    return "".join(found) + text_rewritten("".join(lines[at:]))


def _from(node: ast.ImportFrom, module: str) -> Iterator[str] | list[str]:
    base = node.module or ""
    if node.level and not module:
        return [ast.unparse(node)]
    if node.level:
        parts = module.split(".")[: -node.level]
        base = ".".join([*parts, base] if base else parts)
    if base.partition(".")[0] not in ROOTS:
        return [ast.unparse(node)]
    found = []
    for alias in node.names:
        full = f"{base}.{alias.name}"
        known = f" as {alias.asname}" if alias.asname else ""
        if full in MOVED:
            parent, _, name = MOVED[full].rpartition(".")
            known = known or ("" if name == alias.name else f" as {alias.name}")
            found.append(f"from {parent} import {name}{known}")
        else:
            place = SYMBOLS.get((base, alias.name)) or MOVED.get(base, base)
            found.append(f"from {place} import {alias.name}{known}")
    return found


TEXT_NAMES = sorted(MOVED, key=len, reverse=True)
DOTTED = re.compile(
    r"(?<![\w./-])(" + "|".join(map(re.escape, TEXT_NAMES)) + r")(?![\w-]|\.(?:toml|cfg|service|env))"
)


def short_paths() -> dict[str, str]:
    found = {}
    for old, new in MOVED.items():
        was, now = old.replace(".", "/") + ".py", new.replace(".", "/") + ".py"
        found[was] = now
        if was.startswith("hpwsn/") and was.count("/") > 1:
            found[was.removeprefix("hpwsn/")] = now.removeprefix("hpwsn/")
        if was.startswith("hpwsn_client/wsn/"):
            found[was.removeprefix("hpwsn_client/")] = now.removeprefix("hpwsn_client/")
    return found


PATHS = short_paths()
SLASHED = re.compile(
    r"(?<![\w.-])((?:client/|admin/)?)("
    + "|".join(map(re.escape, sorted(PATHS, key=len, reverse=True)))
    + r")(?!\w)"
)


def text_rewritten(text: str) -> str:
    text = DOTTED.sub(lambda m: MOVED[m[1]], text)

    def path(m: re.Match[str]) -> str:
        new = PATHS[m[2]]
        return ("" if new.startswith("hpwsn/") else m[1]) + new

    return SLASHED.sub(path, text)


def parts(text: str) -> tuple[str, list[str], list[str], str]:
    """Docstring, imports, blocks for type checkers, and the rest of a module."""
    tree, lines = ast.parse(text), text.splitlines(keepends=True)
    doc, imports, checking, cut = "", [], [], set()
    for node in tree.body:
        span = range(node.lineno - 1, node.end_lineno or node.lineno)
        source = "".join(lines[i] for i in span)
        if node is tree.body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            doc = source
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(source)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            checking.append(source)
        else:
            continue
        cut |= set(span)
    return doc, imports, checking, "".join(line for i, line in enumerate(lines) if i not in cut)


def defined(text: str) -> dict[str, str]:
    found = {}
    for node in ast.parse(text).body:
        for name in (
            [node.name]
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            else [t.id for t in node.targets if isinstance(t, ast.Name)]
            if isinstance(node, ast.Assign)
            else [node.target.id]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            else []
        ):
            found[name] = ast.unparse(node)
    return found


def merge(new: str, olds: list[str]) -> str:
    """One text of several modules; names that are defined twice are printed."""
    docs, imports, checking, bodies = [], [], [], []
    seen: dict[str, str] = {}
    # What is led comes first where the leading module uses it.
    for old in [*olds[1:], olds[0]]:
        doc, imp, chk, body = parts(path_of(old).read_text("utf-8"))
        for name, source in defined(body).items():
            if name in seen and seen[name] == source and len(source.splitlines()) == 1:
                body = re.sub(rf"^{re.escape(source)}\n", "", body, count=1, flags=re.M)
            elif name in seen:
                print(f"{new}: {name} is defined twice")
            seen[name] = source
        docs.append(doc)
        imports += imp
        checking += chk
        bodies.append(body.strip("\n"))
    future = ["from __future__ import annotations\n"]
    rest = [line for line in imports if "__future__" not in line]
    kept = []
    for line in rest:
        node = ast.parse(line).body[0]
        if isinstance(node, ast.ImportFrom) and node.module in (new, *olds):
            continue
        if line not in kept:
            kept.append(line)
    return (
        joined([docs[-1], *docs[:-1]])
        + "\n"
        + "".join(future)
        + "".join(kept)
        + "".join(dict.fromkeys(checking))
        + "\n\n"
        + "\n\n\n".join(bodies)
        + "\n"
    )


def joined(docs: list[str]) -> str:
    """One docstring of several, the first of them leading."""
    found = []
    for doc in docs:
        for paragraph in ast.literal_eval(doc.strip()).strip().split("\n\n"):
            ragged = "\n  " in paragraph or "\n- " in paragraph
            found.append(paragraph if ragged else textwrap.fill(" ".join(paragraph.split()), 106))
    first = found[0] if len(found[0]) < 104 else textwrap.fill(" ".join(found[0].split()), 103)
    raw = "r" if any("\\" in each for each in found) else ""
    return raw + '"""' + "\n\n".join([first, *found[1:]]) + '\n"""\n'


def git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True)


def sources() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    return [ROOT / each for each in listed if each and not each.startswith("scripts/moves/")]


def main() -> None:
    for file in sources():
        if (
            file.name == "CHANGELOG.md"
            or file.suffix in (".wsdl", ".xsd", ".svg", ".png", ".txt")
            or not file.is_file()
        ):
            continue
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        new = text
        if file.suffix == ".py":
            module = name_of(file)
            module = module.removesuffix(".__init__") + ".x" if module.endswith(".__init__") else module
            new = imports_rewritten(new, module)
        else:
            new = text_rewritten(new)
        if new != text:
            file.write_text(new, "utf-8")
    for new, olds in MERGES.items():
        text = merge(new, olds) if len(olds) > 1 else path_of(olds[0]).read_text("utf-8")
        target = path_of(new)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.parent / "__init__.py").exists():
            (target.parent / "__init__.py").write_text('""""""\n')
        if olds[0] != new:
            git("mv", "-f", str(path_of(olds[0])), str(target))
        target.write_text(text, "utf-8")
        for old in olds[1:]:
            git("rm", "-qf", str(path_of(old)))
    move_tests()


def move_tests() -> None:
    unit = ROOT / "tests/unit"
    for file in sorted(unit.rglob("test_*.py")):
        inside = file.relative_to(unit).parts[:-1]
        base = file.stem.removeprefix("test_")
        package = (
            ("hpwsn_client", *inside[1:])
            if inside[:1] == ("client",)
            else ("hpwsn_admin", *inside[1:])
            if inside[:1] == ("admin",)
            else ("hpwsn", *inside)
        )
        old = ".".join((*package, base))
        if old not in MOVED:
            if old not in ALL and inside:
                print("a test of no module:", file.relative_to(ROOT))
            continue
        new = MOVED[old]
        name = new.rpartition(".")[2] if MERGES[new][0] == old else base
        top, *folders = new.split(".")[:-1]
        place = {"hpwsn": unit, "hpwsn_client": unit / "client", "hpwsn_admin": unit / "admin"}[top].joinpath(
            *folders
        )
        target = place / f"test_{name}.py"
        if target != file:
            place.mkdir(parents=True, exist_ok=True)
            git("mv", str(file), str(target))


main()

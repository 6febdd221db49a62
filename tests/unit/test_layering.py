"""Imports point one way: a table of rules, and a walk over every module of the source that checks them.

A rule says for the modules of some scopes which names they must not import. A scope or name covers what lies
below it, and may end in `*`. Rules for modules that do not exist yet hold from the day they do.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"hpwsn": ROOT, "hpwsn_client": ROOT / "client", "hpwsn_admin": ROOT / "admin"}

PURE = (
    "hpwsn_client.wsn",
    "hpwsn.notification",
    "hpwsn.quantities",
    "hpwsn.settings",
    "hpwsn.topics.tree",
    "hpwsn.topics.topic_set",
    "hpwsn.topics.change",
    "hpwsn.topics.ldap.dn",
    "hpwsn.topics.ldap.entries",
    "hpwsn.topics.ldap.mirror",
    "hpwsn.topics.ldap.ldif",
    "hpwsn.matching",
    "hpwsn.backbone.frames",
    "hpwsn.backbone.names",
    "hpwsn.backbone.seen",
    "hpwsn.broker.lifetimes",
    "hpwsn.broker.cursor",
    "hpwsn.broker.retry",
    "hpwsn.broker.properties",
    *(
        f"hpwsn.routing.{module}"
        for module in (
            "acks",
            "duplicates",
            "effects",
            "exchange",
            "fragments",
            "frames",
            "interest",
            "messages",
            "options",
            "original",
            "outbox",
            "pacing",
            "passing",
            "patterns",
            "payloads",
            "publication",
            "reading",
            "records",
            "relays",
            "repeats",
            "replay",
            "router",
            "signing",
            "told",
            "topology",
            "topology_changes",
            "view",
            "ways",
        )
    ),
    "hpwsn_admin.registry",
    "hpwsn_admin.openapi",
    "hpwsn.dtn",
    "hpwsn.streams.builder",
    "hpwsn.streams.conditions",
    "hpwsn.streams.definition",
    "hpwsn.streams.document",
    "hpwsn.streams.drawing",
    "hpwsn.streams.operators",
    "hpwsn.streams.plan",
    "hpwsn.streams.positions",
    "hpwsn.streams.problems",
    "hpwsn.streams.progress",
    "hpwsn.streams.reference",
    "hpwsn.streams.registry",
    "hpwsn.streams.schema",
    "hpwsn.streams.service",
    "hpwsn.streams.windows",
)
OUTSIDE_WORLD = (
    "asyncio",
    "socket",
    "logging",
    "os",
    "time",
    "random",
    "uuid",
    "subprocess",
    "concurrent",
    "http",
)
# Modules of which only a part is the outside world: a thread's own cache is not, a thread is.
OUTSIDE_CALLS = frozenset(
    f"{owner}.{name}"
    for owner, names in {
        "datetime": ("now", "utcnow", "today"),
        "datetime.datetime": ("now", "utcnow", "today"),
        "date": ("today",),
        "datetime.date": ("today",),
        "threading": ("Thread", "Timer"),
    }.items()
    for name in names
)

OWNERS: Mapping[str, tuple[str, ...]] = {
    "sqlite3": ("hpwsn.journal",),
    "spyne": ("hpwsn.door",),
    "httptools": ("hpwsn.broker.push*", "hpwsn.door.heads"),
    "stomp": ("hpwsn.backbone.activemq",),
    "ldap": ("hpwsn.topics.ldap",),
    "pyspark": ("hpwsn.streams.spark",),
    "pyarrow": ("hpwsn.streams.spark",),
    "uvloop": ("hpwsn.node", "hpwsn_admin", "hpwsn.cli"),
}
CONCRETE: Mapping[str, str] = {
    "hpwsn.backbone.embedded": "hpwsn.backbone",
    "hpwsn.backbone.activemq": "hpwsn.backbone",
    "hpwsn.topics.file": "hpwsn.topics",
    "hpwsn.topics.ldap": "hpwsn.topics",
}
BUILDERS = ("hpwsn.node", "hpwsn.cli")
READ_ENVIRONMENT = (
    "hpwsn.cli*",
    "hpwsn.operator_api",
    "hpwsn_client.cli",
    "hpwsn_client.surroundings",
    "hpwsn.topics.command",
)


@dataclass(frozen=True)
class Rule:
    """Modules under `scopes` import nothing under `forbidden`, save those under `except_in`."""

    reason: str
    scopes: tuple[str, ...]
    forbidden: tuple[str, ...]
    except_in: tuple[str, ...] = ()


RULES = (
    Rule("pure layers have no outside world", PURE, OUTSIDE_WORLD),
    Rule("the client stands alone", ("hpwsn_client",), ("hpwsn", "hpwsn_admin")),
    Rule("the admin node knows nodes by what they report", ("hpwsn_admin",), ("hpwsn.broker", "hpwsn.door")),
    Rule(
        "nothing behind the door knows the door",
        (
            "hpwsn.topics",
            "hpwsn.journal",
            "hpwsn.backbone",
            "hpwsn.matching",
            "hpwsn.broker",
            "hpwsn.routing",
        ),
        ("hpwsn.door",),
    ),
    Rule("a backbone knows nothing above it", ("hpwsn.backbone",), ("hpwsn.broker", "hpwsn.topics")),
    Rule(
        "jobs know a node by its door, and the broker knows no jobs",
        ("hpwsn.streams",),
        ("hpwsn.broker", "hpwsn.journal", "hpwsn.door", "hpwsn.node"),
    ),
    Rule("the broker asks through a hook", ("hpwsn.broker", "hpwsn.journal"), ("hpwsn.streams",)),
    Rule("the broker knows no web framework", ("hpwsn.broker",), ("spyne", "aiohttp")),
    Rule("the journal knows nothing above it", ("hpwsn.journal",), ("hpwsn.broker", "hpwsn.topics")),
    Rule(
        "only the command line reads configuration",
        ("hpwsn",),
        ("hpwsn.config",),
        ("hpwsn.cli*", "hpwsn.config_reference"),
    ),
    *(
        Rule(f"{library} has one owner", tuple(PACKAGES), (library,), owners)
        for library, owners in OWNERS.items()
    ),
    *(
        Rule(f"{module} is built in one place", tuple(PACKAGES), (module,), (*BUILDERS, package))
        for module, package in CONCRETE.items()
    ),
)


def under(name: str, scopes: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, scope) or name.startswith(scope + ".") for scope in scopes)


@cache
def modules() -> Mapping[str, Path]:
    """Every module of ours by its dotted name."""
    found: dict[str, Path] = {}
    for package, root in PACKAGES.items():
        for file in (root / package).rglob("*.py"):
            parts = file.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def imports(module: str) -> tuple[tuple[str, int], ...]:
    """What a module imports at run time, with the line; `from a import b` counts as `a.b`."""
    file = modules()[module]
    return tuple(_walk(ast.parse(file.read_text("utf-8")), module, file.name == "__init__.py"))


def _walk(node: ast.AST, module: str, is_package: bool) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name, child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = _absolute(child, module, is_package)
            yield from ((f"{base}.{alias.name}", child.lineno) for alias in child.names)
        yield from _walk(child, module, is_package)


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join((*parts, node.module) if node.module else parts)


def breaches(rule: Rule) -> list[str]:
    return [
        f"{modules()[module].relative_to(ROOT)}:{line} imports {name}"
        for module in sorted(modules())
        if under(module, rule.scopes) and not under(module, rule.except_in)
        for name, line in imports(module)
        if under(name, rule.forbidden)
    ]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.reason.replace(" ", "-"))
def test_imports_follow_the_rule(rule: Rule) -> None:
    assert not breaches(rule), rule.reason


def test_pure_layers_neither_ask_the_time_nor_start_threads() -> None:
    found = [
        f"{modules()[module].relative_to(ROOT)}:{node.lineno} calls {ast.unparse(node.func)}"
        for module in modules()
        if under(module, PURE)
        for node in ast.walk(ast.parse(modules()[module].read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in OUTSIDE_CALLS
    ]
    assert not found


def test_only_the_command_line_reads_the_environment() -> None:
    found = [
        str(file.relative_to(ROOT))
        for module, file in modules().items()
        if not under(module, READ_ENVIRONMENT)
        and any(word in file.read_text("utf-8") for word in ("os.environ", "os.getenv"))
    ]
    assert not found


def test_every_folder_of_modules_is_a_package_so_that_the_wheel_takes_it() -> None:
    folders = {file.parent for file in modules().values()}
    assert not [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()]


def test_the_contracts_are_found_as_a_package() -> None:
    from importlib.resources import files

    assert any(file.name.endswith(".wsdl") for file in files("hpwsn.contracts").iterdir())


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import hpwsn", {"pyspark", "ldap", "stomp", "spyne", "aiohttp", "sqlite3"}),
        ("import hpwsn_client", {"aiohttp", "hpwsn"}),
        ("import hpwsn.node, hpwsn.backbone.internal", {"stomp", "ldap", "pyspark"}),
        ("import hpwsn_client.wsn", {"asyncio", "aiohttp", "hpwsn"}),
        (
            "import hpwsn.streams.loading, hpwsn.streams.reference, hpwsn.streams.drawing",
            {"pyspark", "pyarrow", "pandas", "asyncio", "aiohttp"},
        ),
        (
            "import hpwsn.cli; hpwsn.cli.build_parser()",
            {"pyspark", "ldap", "stomp", "spyne", "aiohttp", "sqlite3"},
        ),
    ],
)
def test_an_import_loads_only_what_it_needs(statement: str, unwanted: set[str]) -> None:
    code = f"import sys\n{statement}\nprint(*(name.partition('.')[0] for name in sys.modules))"
    path = ":".join(map(str, PACKAGES.values()))
    run = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert not unwanted & set(run.stdout.split())


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import os.path as p", ["os.path"]),
        ("from . import tree", ["hpwsn.topics.tree"]),
        ("from ..door import soap", ["hpwsn.door.soap"]),
        ("def f():\n    import asyncio", ["asyncio"]),
        ("if TYPE_CHECKING:\n    import asyncio", []),
    ],
)
def test_the_walk_itself_sees_every_form_of_import(source: str, names: list[str]) -> None:
    found = _walk(ast.parse(source), "hpwsn.topics.directory", False)
    assert [name for name, _ in found] == names

"""Imports point one way: rules for folders, and a walk over every module of the source that checks them.

A rule names folders and what their modules must not import. A name covers what lies below it, and may end
in `*`. A rule for a folder that does not exist yet holds from the day it does.
"""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"hpwsn": ROOT, "hpwsn_client": ROOT / "client", "hpwsn_admin": ROOT / "admin"}

PURE = (
    "hpwsn_client.wsn",
    "hpwsn.backbone.wire",
    "hpwsn.broker.lifetimes",
    "hpwsn.broker.queueing",
    "hpwsn.door.event_shapes",
    "hpwsn.door.notify",
    "hpwsn.dtn",
    "hpwsn.matching",
    "hpwsn.routing.interest",
    "hpwsn.routing.publications",
    "hpwsn.routing.topology",
    "hpwsn.routing.wire",
    "hpwsn.sensors.physical",
    "hpwsn.sensors.readings",
    "hpwsn.sensors.simulation",
    "hpwsn.sensors.templates",
    "hpwsn.settings",
    "hpwsn.streams.definition",
    "hpwsn.streams.operators",
    "hpwsn.streams.plan",
    "hpwsn.topics.editing",
    "hpwsn.topics.ldap.entries",
    "hpwsn.topics.tree",
)
"""Folders without I/O and clocks, with all below them."""
SHARED_VALUES = (
    "hpwsn.notification",
    "hpwsn.errors",
    "hpwsn.journal.store.records",
    "hpwsn.broker.push.request",
)
"""The modules outside of pure folders that pure ones may import: values and exceptions."""
MOST_MODULES = 15
FEWEST_LINES = 50
SMALL = {
    "hpwsn.topics.tree.toml_limits": "a scan of any TOML, apart from the format of topics",
    "hpwsn.backbone.embedded": "one of the two implementations of its port",
    "hpwsn.broker.subscriptions.subscribe_policy": "what a Subscribe may ask for, apart from the registry",
    "hpwsn.broker.idle_pull_points": "ends with subscriptions what the registry of pull points only finds",
    "hpwsn.listeners": "every layer has listeners",
    "hpwsn.push_mark": "senders write the mark and doors read it",
    "hpwsn.monitoring.metrics.admin_metrics": "the table of the admin node, which a node does not have",
    "hpwsn.durable_files": "every layer has files that must survive",
    "hpwsn.topics.directory.tree_cache": "the cache of one directory, apart from all that follow it",
    "hpwsn.matching.papers.selectable": "a table that loads every engine in it",
    "hpwsn.broker.topic_rates": "what counts for a topic, apart from the window of all rates",
    "hpwsn.door.rest.services.service_requests": "who reads a service, apart from the addresses of services",
    "hpwsn.broker.topic_effect": "what edits do to subscriptions, of which the topics know nothing",
    "hpwsn.door.listener.loop_guard": "of the full lane only; the other lane hands over what it refuses",
    "hpwsn.door.rest.operations.presence_door": "tells of consumers, and the other doors of subscriptions",
    "hpwsn.door.rest.authorization": "what a model of identities will replace",
    "hpwsn.topics.tree.internal_topics": "the rule for subscribers, apart from the tree that it asks",
    "hpwsn.sensors.readings.reading": "the value that every part of the sensors hands on",
    "hpwsn.sensors.intake.committed_readings": "what history and virtual sensors share of every commit",
    "hpwsn.routing.links.authentication_failures": "the log, which the pure frames must not know",
    "hpwsn.streams.examples.vehicle_pairs": "a user's function, as short as users write them",
    "hpwsn.http_json.shared_openapi": "loads the data files in openapi_parts",
    "hpwsn.tracing.span_hooks": "what the broker and routing know of tracing, without OpenTelemetry",
    "hpwsn.commands.sensors.sensors_parser": "the command, apart from its actions",
    "hpwsn.commands.dtn.dtn_parser": "the command, apart from its actions",
    "hpwsn_client.commands.main": "the program, apart from its commands",
    "hpwsn_admin.announcements": "the form of a registration, apart from the registry that takes it",
    "hpwsn_client.wsn.faults": "the public name of the faults",
}
"""Modules under 50 lines, each with the reason for a file of its own."""
SAME_NOUN = {
    "broker",
    "cluster",
    "dead_letters",
    "demand",
    "environment",
    "errors",
    "faults",
    "frames",
    "main",
    "metrics",
    "notification",
    "openapi",
    "outbox",
    "profile",
    "pull_points",
    "receipts",
    "registrations",
    "resources",
    "streams",
    "subscriptions",
    "tls",
}
"""Basenames of several modules: each means the same thing in every layer that has it."""
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
    "multiprocessing",
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
    "spyne": ("hpwsn.door.soap.contract", "hpwsn.door.soap.dispatch"),
    "httptools": ("hpwsn.broker.push", "hpwsn.door.listener"),
    "stomp": ("hpwsn.backbone.activemq",),
    "ldap": ("hpwsn.topics.ldap",),
    "pyspark": ("hpwsn.streams.spark",),
    "google": ("hpwsn.door.protobuf",),
    "pyarrow": (
        "hpwsn.streams.spark",
        "hpwsn.streams.arrow_json",
        "hpwsn.door.arrow",
        "hpwsn.sensors.history",
    ),
    "pint": ("hpwsn.sensors.physical",),
    "matplotlib": ("hpwsn.sensors.history", "hpwsn.dtn.drawing"),
    "cbor2": ("hpwsn.dtn", "hpwsn.node.carriers"),
    "paho": ("hpwsn.sensors.gateways", "hpwsn.commands.sensors"),
    "uvloop": ("hpwsn.node", "hpwsn_admin"),
    "prometheus_client": ("hpwsn.monitoring",),
    "opentelemetry": ("hpwsn.tracing",),
}
CONCRETE: Mapping[str, tuple[str, ...]] = {
    "hpwsn.backbone.embedded": ("hpwsn.node",),
    # A job's sink is a process of its own, and builds what it needs there.
    "hpwsn.backbone.activemq": (
        "hpwsn.node",
        "hpwsn.backbone.activemq",
        "hpwsn.streams.spark.publishing.task_publishing",
    ),
    "hpwsn.topics.directory.topic_file": ("hpwsn.topics.opening",),
    "hpwsn.topics.ldap.ldap_*": ("hpwsn.topics.opening", "hpwsn.topics.ldap"),
}
"""Implementations of ports, each with those who may name it."""
READ_ENVIRONMENT = ("hpwsn.commands", "hpwsn_client.commands", "hpwsn_client.environment")


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
            "hpwsn.sensors",
            "hpwsn.monitoring",
        ),
        ("hpwsn.door", "hpwsn.page"),
    ),
    Rule(
        "only the node joins sensors with the rest, and the rest knows no sensors",
        (
            "hpwsn.backbone",
            "hpwsn.broker",
            "hpwsn.journal",
            "hpwsn.matching",
            "hpwsn.monitoring",
            "hpwsn.routing",
            "hpwsn.streams",
            "hpwsn.topics",
        ),
        ("hpwsn.sensors",),
    ),
    Rule("delay tolerance knows no broker", ("hpwsn.dtn",), ("hpwsn.broker", "hpwsn.node")),
    Rule(
        "only the node joins carriers with the rest, and the rest knows no delay tolerance",
        (
            "hpwsn.backbone",
            "hpwsn.broker",
            "hpwsn.door",
            "hpwsn.journal",
            "hpwsn.matching",
            "hpwsn.monitoring",
            "hpwsn.routing",
            "hpwsn.sensors",
            "hpwsn.streams",
            "hpwsn.topics",
        ),
        ("hpwsn.dtn",),
    ),
    Rule("sensors get settings and parts from the node", ("hpwsn.sensors",), ("hpwsn.node",)),
    Rule(
        "sensors are known without what is made of their readings",
        ("hpwsn.sensors.physical", "hpwsn.sensors.registry"),
        tuple(
            f"hpwsn.sensors.{part}"
            for part in (
                "gateways",
                "history",
                "intake",
                "readings",
                "simulation",
                "templates",
                "virtual",
            )
        ),
    ),
    Rule(
        "readings come in without what is made of them",
        ("hpwsn.sensors.readings", "hpwsn.sensors.intake", "hpwsn.sensors.gateways"),
        (
            "hpwsn.sensors.history",
            "hpwsn.sensors.simulation",
            "hpwsn.sensors.templates",
            "hpwsn.sensors.virtual",
        ),
    ),
    Rule(
        "the page gets its data from the browser's requests, and its door has none",
        ("hpwsn.page",),
        (
            "hpwsn.broker",
            "hpwsn.door",
            "hpwsn.journal",
            "hpwsn.monitoring",
            "hpwsn.node",
            "hpwsn.routing",
            "hpwsn.settings",
            "hpwsn.streams",
            "hpwsn.topics",
        ),
    ),
    Rule(
        "monitoring gets figures from its callers, so that the admin node can use it too",
        ("hpwsn.monitoring",),
        ("hpwsn.broker", "hpwsn.routing", "hpwsn.journal", "hpwsn.streams", "hpwsn.topics"),
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
        ("hpwsn.configuration",),
        ("hpwsn.commands", "hpwsn.configuration"),
    ),
    *(
        Rule(f"{library} has one owner", tuple(PACKAGES), (library,), owners)
        for library, owners in OWNERS.items()
    ),
    *(
        Rule(f"{module} is built in one place", tuple(PACKAGES), (module,), builders)
        for module, builders in CONCRETE.items()
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


def sources() -> list[str]:
    """The modules that hold code: neither entry points nor the docstring of a package."""
    return [
        module
        for module, file in modules().items()
        if file.name not in ("__init__.py", "__main__.py")
        or (file.name == "__init__.py" and len(ast.parse(file.read_text("utf-8")).body) > 1)
    ]


def is_package(module: str) -> bool:
    return modules()[module].name == "__init__.py"


def length(module: str) -> int:
    return len(modules()[module].read_text("utf-8").splitlines())


def folder_of(module: str) -> str:
    """The package that a module lies in, as a folder; a package is its own."""
    return module if is_package(module) else module.rpartition(".")[0]


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


def test_pure_folders_import_pure_folders_only() -> None:
    found = [
        f"{modules()[module].relative_to(ROOT)}:{line} imports {name}"
        for module in sorted(modules())
        if under(module, PURE)
        for name, line in imports(module)
        if under(name, tuple(PACKAGES)) and not under(name, (*PURE, *SHARED_VALUES))
    ]
    assert not found


def test_no_folder_has_too_many_modules() -> None:
    crowded = {
        name: count for name, count in Counter(map(folder_of, sources())).items() if count > MOST_MODULES
    }
    assert not crowded


def test_no_folders_import_each_other_in_a_cycle() -> None:
    known: dict[str, set[str]] = {}
    for module in sources():
        for name, _ in imports(module):
            target = name if name in modules() else name.rpartition(".")[0]
            if target in modules() and folder_of(target) != folder_of(module):
                known.setdefault(folder_of(module), set()).add(folder_of(target))
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_a_basename_of_two_modules_is_known_to_mean_the_same_in_both() -> None:
    names = Counter(module.rpartition(".")[2] for module in sources() if not is_package(module))
    assert {name for name, count in names.items() if count > 1} == SAME_NOUN


def test_a_small_module_has_a_reason_to_be_one() -> None:
    small = {module for module in sources() if not is_package(module) and length(module) < FEWEST_LINES}
    assert small == set(SMALL)


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
        ("import hpwsn_client.client", {"opentelemetry", "hpwsn"}),
        (
            "import hpwsn.node.node, hpwsn.backbone.activemq.internal_publisher",
            {"stomp", "ldap", "pyspark", "opentelemetry", "pint", "paho", "pyarrow", "matplotlib"},
        ),
        ("import hpwsn_client.wsn", {"asyncio", "aiohttp", "hpwsn"}),
        (
            "import hpwsn.streams.definition_files, hpwsn.streams.plan.plan, hpwsn.streams.plan.plan_drawing",
            {"pyspark", "pyarrow", "pandas", "asyncio", "aiohttp"},
        ),
        (
            "import hpwsn.commands.main; hpwsn.commands.main.build_parser()",
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
        ("from . import topic_file", ["hpwsn.topics.directory.topic_file"]),
        ("from ..tree import overlap", ["hpwsn.topics.tree.overlap"]),
        ("def f():\n    import asyncio", ["asyncio"]),
        ("if TYPE_CHECKING:\n    import asyncio", []),
    ],
)
def test_the_walk_itself_sees_every_form_of_import(source: str, names: list[str]) -> None:
    found = _walk(ast.parse(source), "hpwsn.topics.directory.directory", False)
    assert [name for name, _ in found] == names

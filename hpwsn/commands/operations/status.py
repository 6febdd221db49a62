"""`hpwsn status`: one screen of what matters about a node.

It shows the verdict, problems and alerts with what to do, rates, latency, backlog, journal, process, and the
members of the cluster. The exit status is 1 if the node is not ready or does not answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from hpwsn.commands.operations.operator_api import (
    NodeRequestFailed,
    add_command,
    add_node_options,
    address,
    dump,
    request,
    send,
    table,
)
from hpwsn.commands.operations.watching import add_watch_option, coloured, show
from hpwsn.logs import counted

_EXAMPLES = """\
  hpwsn status
  hpwsn status --watch
  hpwsn status --json --url http://broker.example.org:8080/wsn
"""
_MEMBERS = ("name", "cluster", "state", "heartbeat", "published/s", "delivered/s", "waiting", "url")
_COLOURS = {"critical": "red", "error": "red", "warning": "yellow"}
_LABEL = 14


def add_status_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command `status`."""
    parser = add_command(commands, "status", "show on one screen how a node is", _EXAMPLES)
    add_node_options(parser)
    add_watch_option(parser, "the screen")
    parser.set_defaults(handler=_status)


def _status(arguments: argparse.Namespace) -> int:
    ready = False

    def screen() -> str:
        nonlocal ready
        ready = False
        found = collect(arguments)
        ready = found["ready"]
        return dump(found) if arguments.json else "\n".join(lines(found))

    show(arguments, screen)
    return 0 if ready else 1


def collect(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the node says about itself, in one object; `alerts` and `cluster` are empty where it has none."""
    readiness = send("GET", address(arguments, "readyz"), ca=arguments.ca, accepted=(503,))
    status = request("GET", address(arguments, "status"), ca=arguments.ca)
    cluster = _optional(arguments, "cluster")
    members = [
        {**node, "cluster": one["name"]} for one in cluster.get("clusters", []) for node in one["nodes"]
    ]
    own = next((node for node in members if node["name"] == status["node"]), {})
    return {
        "ready": readiness["ready"],
        "alerts": _optional(arguments, "alerts").get("items", []),
        "figures": own.get("figures") or {},
        "members": members,
        **status,
    }


def _optional(arguments: argparse.Namespace, path: str) -> dict[str, Any]:
    try:
        return request("GET", address(arguments, path), ca=arguments.ca)
    except NodeRequestFailed as error:
        if error.status != 404:
            raise
        return {}


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The screen, line by line."""
    yield (
        f"{coloured(found['node'], 'bold')}  HPwsn {found['version']}, up {_duration(found['uptime'])}"
        f"  {_verdict(found)}"
    )
    yield from _troubles(found)
    yield ""
    yield from (f"{label:{_LABEL}}{text}" for label, text in _facts(found))
    if len(found["members"]) > 1:
        yield ""
        yield table([_member(node) for node in found["members"]], _MEMBERS, "")


def _verdict(found: Mapping[str, Any]) -> str:
    if not found["ready"]:
        return coloured("NOT READY", "red")
    number = len(found["alerts"]) or len(found["problems"])
    if number:
        return coloured(f"ready, {number} {'alert' if number == 1 else 'alerts'}", "yellow")
    return coloured("ready", "green")


def _troubles(found: Mapping[str, Any]) -> Iterator[str]:
    alerts = found["alerts"]
    told = " ".join(alert["text"] for alert in alerts)
    for problem in found["problems"]:
        if problem not in told:
            yield f"  {coloured('problem', 'red')}  {problem}"
    for alert in alerts:
        severity = coloured(alert["severity"], _COLOURS.get(alert["severity"], "yellow"))
        yield f"  {severity}  {alert['text']} (since {alert['since']})"
        if alert["remedy"]:
            yield f"    {alert['remedy']}"


def _facts(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    figures, published, delivery = found["figures"], found["published"], found["delivery"]
    yield "published", f"{_rate(figures, 'published_rate')}, {published['accepted']:,} since the start"
    yield (
        "delivered",
        f"{_rate(figures, 'delivered_rate')}, {delivery['delivered']:,} since the start;"
        f" failed {_rate(figures, 'failed_rate')}",
    )
    latency = found.get("latency", {})
    yield "latency", "; ".join(_quantiles(name, latency.get(name, {})) for name in ("accept", "deliver"))
    yield (
        "backlog",
        f"{_number(figures.get('waiting'))} waiting,"
        f" {counted(delivery['waiting_for_retry'], 'subscription')} waiting for a retry",
    )
    yield "dead letters", _number(figures.get("dead_letters"))
    yield (
        "resources",
        f"{counted(found['topics'], 'topic')}, {counted(found['subscriptions'], 'subscription')},"
        f" {counted(found['pull_points'], 'pull point')}",
    )
    journal, process = found["journal"], found["process"]
    yield "journal", f"{_bytes(journal['database_bytes'])}, offset {journal['last_offset']:,}"
    yield "process", ", ".join(_process(process, figures))


def _process(process: Mapping[str, Any], figures: Mapping[str, Any]) -> Iterator[str]:
    cpu = process.get("cpu", figures.get("cpu"))
    yield "CPU -" if cpu is None else f"CPU {100 * cpu:.0f} %"
    yield f"memory {_bytes(process.get('rss', process.get('memory_bytes', 0)))}"
    yield f"{process['threads']} threads"
    yield f"{process.get('files', process.get('descriptors'))} files"


def _member(node: Mapping[str, Any]) -> dict[str, Any]:
    figures = node.get("figures") or {}
    age = node.get("heartbeat_age")
    return {
        **node,
        "heartbeat": None if age is None else f"{age:.1f} s ago",
        "published/s": _plain_rate(figures.get("published_rate")),
        "delivered/s": _plain_rate(figures.get("delivered_rate")),
        "waiting": figures.get("waiting"),
    }


def _rate(figures: Mapping[str, Any], name: str) -> str:
    return f"{_plain_rate(figures.get(name))}/s"


def _plain_rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _quantiles(name: str, found: Mapping[str, float | None]) -> str:
    return f"{name} p50 {_milliseconds(found.get('p50'))}, p99 {_milliseconds(found.get('p99'))}"


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def _duration(seconds: float) -> str:
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {int(seconds % 60)} s" if minutes else f"{int(seconds)} s"

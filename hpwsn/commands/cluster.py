"""`hpwsn admin` starts the admin node of a cluster; `hpwsn cluster` shows the nodes registered there."""

import argparse
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hpwsn.commands.operations.operator_api import add_ca_option, check_address, dump, request
from hpwsn.commands.options import add_config_options, ignore_hangup, load_config_from
from hpwsn.configuration.sources import ADMIN_FLAGS
from hpwsn.errors import HpwsnError

DEFAULT_ADMIN = "http://127.0.0.1:8070"

_ADMIN_EXAMPLES = """\
Prints `ready http://HOST:PORT/` once it accepts requests; SIGTERM ends it with status 0. It requires the same
secret as the nodes of the cluster: HPWSN_CLUSTER_SECRET, or cluster.secret_file.

examples:
  HPWSN_CLUSTER_SECRET=change-me hpwsn admin
  hpwsn admin --host 0.0.0.0 --data /var/lib/hpwsn-admin --set cluster.secret_file=/etc/hpwsn/secret
"""
_CLUSTER_EXAMPLES = """\
The admin node is the one at --admin, else at $HPWSN_CLUSTER_ADMIN, else at http://127.0.0.1:8070.
A star marks the node that represents its cluster.

examples:
  hpwsn cluster
  hpwsn cluster --admin http://admin.example.org:8070 --json
"""


def add_admin_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `hpwsn admin`."""
    parser = commands.add_parser(
        "admin",
        help="start the admin node of a cluster",
        description="Starts the admin node of a cluster.",
        epilog=_ADMIN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_config_options(parser, ADMIN_FLAGS)
    parser.set_defaults(handler=_admin)


def add_cluster_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `hpwsn cluster`."""
    parser = commands.add_parser(
        "cluster",
        help="show the clusters and their nodes",
        description="Shows the clusters and their nodes, as the admin node knows them.",
        epilog=_CLUSTER_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--admin", metavar="URL", help="the admin node's address")
    add_ca_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for a script to read")
    parser.set_defaults(handler=_cluster)


def _admin(arguments: argparse.Namespace) -> int:
    ignore_hangup()
    config = load_config_from(arguments, ADMIN_FLAGS).config
    from hpwsn_admin.server import serve_admin

    return serve_admin(config, lambda: load_config_from(arguments, ADMIN_FLAGS).config)


def _cluster(arguments: argparse.Namespace) -> int:
    admin = (arguments.admin or os.environ.get("HPWSN_CLUSTER_ADMIN") or DEFAULT_ADMIN).rstrip("/")
    check_address(admin, f"give --admin as {DEFAULT_ADMIN}")
    remedy = "start one with `hpwsn admin`, or give --admin"
    topology = request("GET", f"{admin}/api/topology", remedy=remedy, ca=arguments.ca)
    if "clusters" not in topology:
        raise HpwsnError(f"the server at {admin} is not an admin node; check --admin")
    print(dump(topology) if arguments.json else "\n".join(draw_topology(topology, _ascii_only())))
    return 0


def _ascii_only() -> bool:
    try:
        "├└".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return True
    return False


def draw_topology(topology: dict[str, Any], ascii_only: bool = False) -> Iterator[str]:
    """The lines of a tree of the clusters and their nodes."""
    nodes = [node for cluster in topology["clusters"] for node in cluster["nodes"]]
    alive = sum(node["state"] == "alive" for node in nodes)
    clusters = _count(len(topology["clusters"]), "cluster")
    yield f"version {topology['version']}: {clusters}, {alive} of {_count(len(nodes), 'node')} alive"
    fork, last = ("|-- ", "`-- ") if ascii_only else ("├── ", "└── ")
    width = max((len(node["name"]) for node in nodes), default=0)
    for cluster in topology["clusters"]:
        yield cluster["name"]
        for number, node in enumerate(cluster["nodes"], 1):
            branch = last if number == len(cluster["nodes"]) else fork
            star = "*" if node["name"] == cluster["representative"] else " "
            yield f"{branch}{star} {_node(node, width)}"


def _node(node: dict[str, Any], width: int) -> str:
    since = datetime.fromtimestamp(node["since"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    links = f"{node['host']}:{node['port']}"
    return f"{node['name']:{width}}  {node['state']:5}  since {since}  {node['url']}  links {links}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

"""`hpwsn streams`: the actions for stream data services, and `check`.

`check` starts Spark only for queries in SQL, and only if Spark is installed. Without Spark, it checks all
but the queries, and says so.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hpwsn.commands.operations.operator_api import add_command
from hpwsn.commands.streams_generate import add_generate_parser
from hpwsn.commands.streams_list import add_list_parsers
from hpwsn.commands.streams_pack import add_pack_parser
from hpwsn.commands.streams_run import add_run_parsers, require_spark
from hpwsn.commands.streams_start import add_start_parsers
from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.problems import DefinitionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hpwsn.streams.definition.schema import Schema
    from hpwsn.streams.operators.sql import Analyse, Tables
    from hpwsn.streams.plan.plan import Plan

_EXAMPLES = """\
  hpwsn streams generate anpr 1000 --output anpr.json
  hpwsn streams check traffic.toml
  hpwsn streams run traffic.toml
  hpwsn streams start traffic.toml --wait
"""
_UNCHECKED = "the queries in SQL were not checked, because Spark is not installed; their schemas are assumed"
_CHECK = """\
  hpwsn streams check traffic.toml
  hpwsn streams check flow.toml busy.toml --json
"""


def add_streams_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `streams` with its actions."""
    parser = add_command(commands, "streams", "stream data services on Spark", _EXAMPLES)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    about = "check definitions of services, and show their output"
    check = add_command(actions, "check", about, _CHECK, asks_node=False)
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="definitions, in TOML or Python")
    check.add_argument("--json", action="store_true", help="print JSON for a script to read")
    check.set_defaults(handler=_check)
    add_run_parsers(actions)
    add_start_parsers(actions)
    add_pack_parser(actions)
    add_list_parsers(actions)
    add_generate_parser(actions)


def _check(arguments: argparse.Namespace) -> int:
    from hpwsn.streams.definition.definition import input_sources
    from hpwsn.streams.definition_files import load
    from hpwsn.streams.plan.plan import build_plan
    from hpwsn.streams.plan.plan_drawing import attributes, draw, outline

    # The modules of user-defined functions are in the folder of the definition.
    sys.path[:0] = list(dict.fromkeys(str(file.resolve().parent) for file in arguments.files))
    analysis = _Analysis.if_installed()
    try:
        plans = [build_plan(one) for one in load(*arguments.files, analyse=analysis)]
    except DefinitionError as error:
        if not arguments.json:
            raise
        print(json.dumps({"ok": False, "problems": [one.fields() for one in error.problems]}, indent=2))
        return 1
    finally:
        if analysis is not None:
            analysis.close()
    if analysis is None and _has_queries(plans):
        print(f"hpwsn: warning: {_UNCHECKED}", file=sys.stderr)
    if arguments.json:
        services = [
            {
                "uri": plan.definition.uri,
                "topic": plan.definition.topic,
                "description": plan.definition.description,
                "schema": attributes(plan.output),
                "constraints": plan.definition.ranges,
                "inputs": input_sources(plan.definition),
                "plan": outline(plan),
            }
            for plan in plans
        ]
        print(json.dumps({"ok": True, "services": services}, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join("\n".join(draw(plan)) for plan in plans))
    return 0


def _has_queries(plans: "list[Plan]") -> bool:
    return any(node.op.op == "sql" for plan in plans for node in plan.nodes)


class _Analysis:
    """Has queries checked by Spark, which starts with the first query."""

    def __init__(self) -> None:
        self._session: SparkSession | None = None
        self._analyse: Analyse | None = None

    @classmethod
    def if_installed(cls) -> "_Analysis | None":
        """An analysis; None if Spark or Java is not installed."""
        with suppress(HpwsnError):
            require_spark("local")
            return cls()
        return None

    def __call__(self, query: str, tables: "Tables") -> "Schema":
        if self._analyse is None:
            from hpwsn.streams.spark.sql_analysis import QueryAnalysis

            self._analyse = QueryAnalysis(self._open)
        return self._analyse(query, tables)

    def _open(self) -> "SparkSession":
        from hpwsn.streams.spark.session import open_session

        if self._session is None:
            with _quiet():
                self._session = open_session("hpwsn streams check", "local[1]")
        return self._session

    def close(self) -> None:
        """Stop Spark, if it has started."""
        if self._session is not None:
            self._session.stop()


@contextmanager
def _quiet() -> Iterator[None]:
    """Start the JVM without standard error: its log is not about the definitions."""
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)

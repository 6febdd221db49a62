"""`hpwsn streams`: the actions for stream data services, and `check`, which does not need Spark."""

import argparse
import json
import sys
from pathlib import Path

from hpwsn.commands.operator_api import add_command
from hpwsn.commands.streams_generate import add_generate_parser
from hpwsn.commands.streams_pack import add_pack_parser
from hpwsn.commands.streams_run import add_run_parsers
from hpwsn.streams.definition.problems import DefinitionError

_EXAMPLES = """\
  hpwsn streams generate anpr 1000 --output anpr.json
  hpwsn streams check traffic.toml
  hpwsn streams run traffic.toml
"""
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
    add_pack_parser(actions)
    add_generate_parser(actions)


def _check(arguments: argparse.Namespace) -> int:
    from hpwsn.streams.definition_files import load
    from hpwsn.streams.plan.plan import build_plan
    from hpwsn.streams.plan.plan_drawing import attributes, draw

    # The modules of user-defined functions are in the folder of the definition.
    sys.path[:0] = list(dict.fromkeys(str(file.resolve().parent) for file in arguments.files))
    try:
        plans = [build_plan(one) for one in load(*arguments.files)]
    except DefinitionError as error:
        if not arguments.json:
            raise
        print(json.dumps({"ok": False, "problems": [one.fields() for one in error.problems]}, indent=2))
        return 1
    if arguments.json:
        services = [
            {
                "uri": plan.definition.uri,
                "topic": plan.definition.topic,
                "schema": attributes(plan.output),
                "constraints": plan.definition.ranges,
            }
            for plan in plans
        ]
        print(json.dumps({"ok": True, "services": services}, indent=2, ensure_ascii=False))
    else:
        print("\n\n".join("\n".join(draw(plan)) for plan in plans))
    return 0

"""The `hpwsn` command: one parser for all commands, and one place that prints errors.

The parser of a command sets `handler`, a function of the parsed arguments that returns the exit status.
Handlers import their modules themselves, so that help and errors appear quickly. `next_steps` is the text
that `scripts/run` prints when the node is ready.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from hpwsn.commands.bench import add_bench_parser
from hpwsn.commands.cluster import add_admin_parser, add_cluster_parser
from hpwsn.commands.dtn.dtn_parser import add_dtn_parser
from hpwsn.commands.operations.announce import add_announce_parser
from hpwsn.commands.operations.dead_letters import add_deadletters_parser
from hpwsn.commands.operations.profile import add_profile_parser
from hpwsn.commands.operations.resources import PULL_POINTS, REGISTRATIONS, SUBSCRIPTIONS, add_resource_parser
from hpwsn.commands.operations.status import add_status_parser
from hpwsn.commands.operations.top import add_top_parser
from hpwsn.commands.options import (
    add_config_options,
    ignore_hangup,
    load_config_from,
    load_startable_config,
    setting_problem,
)
from hpwsn.commands.sensors.sensors_parser import add_sensors_parser
from hpwsn.commands.streams import add_streams_parser
from hpwsn.commands.topics import add_topics_parser
from hpwsn.configuration.environment import check_environment
from hpwsn.configuration.sources import FLAGS, LoadedConfig, display_value, mask_secrets, value_of
from hpwsn.errors import BadArguments, ConfigError, HpwsnError, SettingError
from hpwsn.settings import SETTINGS
from hpwsn_client import __version__
from hpwsn_client.commands.completion import CommandParser, add_completion_parser, print_error
from hpwsn_client.commands.listen import add_listen_parser
from hpwsn_client.commands.publish import add_publish_parser

Subparsers = argparse._SubParsersAction
DEFAULT_URL = "http://127.0.0.1:8080/wsn"
_LOOPBACK = {"0.0.0.0:": "127.0.0.1:", "[::]:": "[::1]:"}
_TRUST = "If the system does not trust the certificate, add --ca with the PEM file of its authority.\n"
_PAYLOAD = "'<reading>21.5</reading>'"

_EXAMPLES = """\
examples:
  hpwsn serve                              start a node on http://127.0.0.1:8080/wsn
  hpwsn listen alarms:fire                 print notifications on a topic and the topics below it
  hpwsn publish alarms:fire "It burns"     publish to a topic
  hpwsn COMMAND --help                     options and examples of a command
"""
_SERVE_EXAMPLES = """\
Prints `ready http://HOST:PORT/wsn` once it accepts requests. On SIGTERM it finishes in-flight
requests and exits with status 0. On SIGHUP it reloads the certificate, the topics and the log settings.

examples:
  hpwsn serve
  hpwsn serve --port 0 --data /tmp/trial
  hpwsn serve --host 0.0.0.0 --topics topics.toml --set journal.durability=fsync
  HPWSN_LOG_LEVEL=debug hpwsn serve --config /etc/hpwsn.toml
"""
_CHECK_EXAMPLES = """\
Takes the flags of `hpwsn serve`, does not start a node, and exits 1 if there are problems.

examples:
  hpwsn check-config
  hpwsn check-config --config /etc/hpwsn.toml --show
  hpwsn check-config --set server.port=80 --json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    handler = _handler(arguments)
    if handler is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        if getattr(arguments, "uses_environment", not getattr(arguments, "loads_config", False)):
            check_environment(os.environ)
        status = handler(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader closed the pipe, as `| head` does; the interpreter must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except HpwsnError as error:
        print_error(str(error))
        return 2 if isinstance(error, BadArguments) else 1
    return status


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser: argparse.ArgumentParser = CommandParser(
        prog="hpwsn",
        description="A WS-Notification broker and its tools.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"hpwsn {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_serve_parser(commands)
    add_publish_parser(commands)
    add_listen_parser(commands)
    add_status_parser(commands)
    add_top_parser(commands)
    add_profile_parser(commands)
    add_announce_parser(commands)
    add_topics_parser(commands)
    add_resource_parser(commands, SUBSCRIPTIONS)
    add_resource_parser(commands, PULL_POINTS)
    add_resource_parser(commands, REGISTRATIONS)
    add_deadletters_parser(commands)
    add_admin_parser(commands)
    add_cluster_parser(commands)
    add_streams_parser(commands)
    add_sensors_parser(commands)
    add_dtn_parser(commands)
    add_bench_parser(commands)
    _add_check_config_parser(commands)
    add_completion_parser(commands, parser)
    return parser


def _handler(arguments: argparse.Namespace) -> Callable[[argparse.Namespace], int] | None:
    """The function of the command, or None; parsers of the client package call it `run`."""
    return getattr(arguments, "handler", None) or getattr(arguments, "run", None)


def _add_serve_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "serve",
        help="start a node",
        description="Starts a node.",
        epilog=_SERVE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_config_options(parser, FLAGS)
    parser.add_argument(
        "--next-steps",
        action="store_true",
        help="print what to try next once the node is ready, as scripts/run does",
    )
    parser.set_defaults(handler=_serve)


def _add_check_config_parser(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check-config",
        help="check the configuration of a node",
        description="Checks the configuration that a node would start with.",
        epilog=_CHECK_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_config_options(parser, FLAGS)
    parser.add_argument("--show", action="store_true", help="print every setting, including defaults")
    parser.add_argument("--json", action="store_true", help="print JSON for a script to read")
    parser.add_argument(
        "--reference", action="store_true", help="print the reference of all settings and exit"
    )
    parser.set_defaults(handler=_check_config)


def _serve(arguments: argparse.Namespace) -> int:
    ignore_hangup()
    config = load_startable_config(arguments, FLAGS).config
    from hpwsn.node import serve

    def ready(url: str) -> None:
        print(f"ready {url}", flush=True)
        if arguments.next_steps:
            print(next_steps(url, Path(config.data.dir)), file=sys.stderr, flush=True)

    return serve(config, ready, lambda: load_config_from(arguments, FLAGS).config)


def _check_config(arguments: argparse.Namespace) -> int:
    if arguments.reference:
        from hpwsn.configuration.reference import reference

        sys.stdout.write(reference())
        return 0
    try:
        loaded = load_startable_config(arguments, FLAGS)
        _check_topics(loaded)
    except ConfigError as error:
        if not arguments.json:
            raise
        problems = [problem.fields() for problem in error.problems]
        print(json.dumps({"ok": False, "problems": problems}, indent=2, ensure_ascii=False))
        return 1
    print(_as_json(loaded) if arguments.json else "\n".join(_as_text(loaded, arguments.show)))
    return 0


def _check_topics(loaded: LoadedConfig) -> None:
    """Check that the LDAP server of the topics answers, which `serve` would wait for."""
    from hpwsn.node.preflight import check_topics_server

    try:
        check_topics_server(loaded.config)
    except SettingError as error:
        raise ConfigError([setting_problem(error, loaded)]) from None


def _as_json(loaded: LoadedConfig) -> str:
    values = {
        key: {"value": mask_secrets(one, value_of(loaded.config, one)), "source": loaded.source(key)}
        for key, one in SETTINGS.items()
    }
    file = str(loaded.file) if loaded.file else None
    return json.dumps({"ok": True, "file": file, "settings": values}, indent=2, ensure_ascii=False)


def _as_text(loaded: LoadedConfig, everything: bool) -> list[str]:
    keys = [key for key in SETTINGS if everything or key in loaded.sources]
    rows = [
        (key, display_value(SETTINGS[key], value_of(loaded.config, SETTINGS[key])), loaded.source(key))
        for key in keys
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    verdict = "OK: " + (f"{loaded.file}" if loaded.file else "no file")
    given = "1 setting" if len(loaded.sources) == 1 else f"{len(loaded.sources)} settings"
    verdict += f", {given} given, the rest are defaults"
    return [verdict, *(f"  {key:{widths[0]}} = {value:{widths[1]}}  {source}" for key, value, source in rows)]


def next_steps(url: str, data: Path) -> str:
    """The text for a node at this URL with its state in `data`; its commands can be pasted into a shell."""
    command = _command()
    reachable = _reachable(url)
    option = "" if reachable == DEFAULT_URL else f" --url {shlex.quote(reachable)}"
    return f"""
HPwsn listens on {url}
Its page for browsers is {reachable.removesuffix("/wsn")}/ui/

Try it in another terminal:
  {command} listen sensors{option}
and in a third:
  {command} publish sensors:hall:temperature {_PAYLOAD}{option}
{_TRUST if url.startswith("https:") else ""}
Read on: README.md, docs/clients.md. Another port: scripts/run --port 8090
Stop with Ctrl-C. State stays in {data.absolute()}
"""


def _reachable(url: str) -> str:
    """The URL for clients on this machine; an address that means all addresses becomes the loopback one."""
    for every, own in _LOOPBACK.items():
        if urlsplit(url).netloc.startswith(every):
            return url.replace(every, own, 1)
    return url


def _command() -> str:
    """The shell command that starts this `hpwsn` from the current directory."""
    program = Path(sys.argv[0]).absolute()
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))

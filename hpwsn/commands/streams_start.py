"""`hpwsn streams start` and `stop`: services that a node runs.

`start` posts a definition. With `--wait` it follows the state of the service until it is running or has
failed, and prints it to standard error, at each change and every few seconds. `stop` returns when the job has
ended. A service whose job the node does not run is only forgotten.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from hpwsn.commands.operations.operator_api import (
    add_command,
    add_node_options,
    address,
    dump,
    request,
    send,
)
from hpwsn.errors import BadArguments, HpwsnError

START_TIMEOUT = 180.0
"""Seconds to wait for the answer to a definition, which Spark may have to check."""
STOP_TIMEOUT = 300.0
"""Seconds to wait for the end of a job; the node's `streams.stop_timeout` is usually less."""
LOOK, SPEAK = 0.5, 5.0
"""Seconds between two looks at the state of a service, and between two lines about the same state."""
_START = """\
  hpwsn streams start traffic.toml
  hpwsn streams start traffic.toml --wait
  hpwsn streams start traffic.toml --url http://broker.example.org:8080/wsn --json
"""
_STOP = """\
  hpwsn streams stop urn:example:flow
"""


def add_start_parsers(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the actions `start` and `stop` to the command `streams`."""
    start = add_command(actions, "start", "let a node run a service (its setting streams.agent)", _START)
    start.add_argument("file", type=Path, metavar="FILE", help="a definition, in TOML")
    start.add_argument("--wait", action="store_true", help="wait until the service is running or has failed")
    add_node_options(start)
    start.set_defaults(handler=_start)
    stop = add_command(actions, "stop", "stop a service that a node runs, and forget it", _STOP)
    stop.add_argument("uri", metavar="URI", help="the uri of the service")
    add_node_options(stop)
    stop.set_defaults(handler=_stop)


def _start(arguments: argparse.Namespace) -> int:
    try:
        definition = arguments.file.read_bytes()
    except OSError as error:
        raise BadArguments(f"{arguments.file}: {error.strerror}; give a definition in TOML") from None
    answer = send(
        "POST",
        address(arguments, "streams"),
        definition,
        content_type="application/toml",
        timeout=START_TIMEOUT,
        ca=arguments.ca,
    )
    uri = str(answer.get("uri"))
    service = _wait(arguments, uri) if arguments.wait else _show(arguments, uri)
    if arguments.json:
        print(dump(service))
    else:
        print(f"{uri} is {service['state']}; its events: {address(arguments, 'streams', uri)}/events")
    return 0


def _show(arguments: argparse.Namespace, uri: str) -> dict[str, Any]:
    return request("GET", address(arguments, "streams", uri), ca=arguments.ca)


def _wait(arguments: argparse.Namespace, uri: str) -> dict[str, Any]:
    """The service once it is running; HpwsnError with the end of its log if it has failed."""
    began, before, spoken = time.monotonic(), "", 0.0
    while True:
        service, now = _show(arguments, uri), time.monotonic()
        state = str(service.get("state"))
        if state != before or now >= spoken + SPEAK:
            print(f"{now - began:5.1f} s  {uri} is {state}", file=sys.stderr, flush=True)
            before, spoken = state, now
        if state == "running":
            return service
        if state == "failed":
            raise HpwsnError(_failure(service))
        time.sleep(LOOK)


def _failure(service: dict[str, Any]) -> str:
    reason = service.get("reason") or service.get("log_note")
    told = f"{service['uri']} has failed" + (f": {reason}" if reason else "")
    lines = service.get("log")
    return "\n".join((f"{told}; the end of its log:", *lines)) if lines else told


def _stop(arguments: argparse.Namespace) -> int:
    where = address(arguments, "streams", arguments.uri)
    # Only a service that the node runs was created at it.
    runs = request("GET", where, ca=arguments.ca).get("created") is not None
    send("DELETE", where, timeout=STOP_TIMEOUT, ca=arguments.ca)
    if arguments.json:
        print(dump({"stopped" if runs else "forgotten": arguments.uri}))
    elif runs:
        print(f"{arguments.uri} has stopped")
    else:
        print(f"{arguments.uri} is forgotten; its job is not run by this node, and was not stopped")
    return 0

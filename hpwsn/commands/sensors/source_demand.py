"""Starts and stops a source of readings as its sensors get users and lose them.

The node says for each sensor on demand whether it is wanted: whether somebody subscribes to its topic or
follows it, or uses a virtual sensor over it. A source of several sensors runs while one of them is wanted.
"""

from __future__ import annotations

import argparse
import sys
import threading

from hpwsn.commands.operations.operator_api import NodeRequestFailed, address, items, request
from hpwsn.commands.sensors.line_source import LineSource
from hpwsn.errors import HpwsnError
from hpwsn_client.commands.completion import print_warning

EVERY = 1.0
"""Seconds between two questions."""


class SourceDemand:
    """Asks the node of the arguments by a thread, and starts and stops the source."""

    def __init__(self, arguments: argparse.Namespace, source: LineSource) -> None:
        self._arguments = arguments
        self._source = source
        self._closed = threading.Event()

    def open(self) -> None:
        """Stop the source unless it is wanted, and follow its users from now on."""
        wanted = self._wanted()
        self._turn(wanted)
        threading.Thread(target=self._follow, args=(wanted,), name="source-demand", daemon=True).start()

    def close(self) -> None:
        """Follow its users no longer."""
        self._closed.set()

    def _follow(self, before: bool) -> None:
        while not self._closed.wait(EVERY):
            try:
                wanted = self._wanted()
            except NodeRequestFailed as error:
                print_warning(f"{error}; the source goes on as before")
                continue
            if wanted != before:
                self._turn(wanted)
            before = wanted

    def _turn(self, wanted: bool) -> None:
        if wanted:
            print("wanted: the source runs", file=sys.stderr, flush=True)
            self._source.start()
        else:
            print("not wanted: the source stands still", file=sys.stderr, flush=True)
            self._source.stop()

    def _wanted(self) -> bool:
        arguments = self._arguments
        if arguments.sensor is not None:
            url = address(arguments, "sensors", arguments.sensor)
            found = [request("GET", url, ca=arguments.ca)]
        else:
            found = items(arguments, "sensors", kind=arguments.kind)["items"]
        if not any(each.get("wanted") is not None for each in found):
            which = arguments.sensor or f"a sensor of the kind {arguments.kind}"
            raise HpwsnError(f'{which} is not registered with "on_demand": true, so nobody can stop it')
        # A sensor that is not on demand always reports.
        return any(each.get("wanted") in (True, None) for each in found)

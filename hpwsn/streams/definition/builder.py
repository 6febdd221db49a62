"""A service written in Python: the same keys as in TOML, as arguments.

::

    flow = (
        Service("urn:example:flow", topic="traffic:flow")
        .input("anpr", source="topic", topic="traffic:anpr", schema="cid STRING, vid STRING, time TIMESTAMP")
        .op("count", by="cid", window="60 s", attribute="vid", output="flow")
        .constraint("flow", "> 0")
    )

Where each call stands is kept, so that errors name its line. Judges nothing itself.
"""

from __future__ import annotations

import sys

from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.definition_toml import definitions_of
from hpwsn.streams.definition.positions import Path


class Service:
    """A definition under construction; each call adds to it and returns it."""

    def __init__(self, uri: str, *, topic: str, description: str = "") -> None:
        self._file = sys._getframe(1).f_code.co_filename
        self._inputs: dict[str, dict[str, object]] = {}
        self._ops: list[dict[str, object]] = []
        self._constraints: dict[str, str] = {}
        self._lines: dict[Path, int] = {(): sys._getframe(1).f_lineno}
        self._head = {"uri": uri, "topic": topic, "description": description}

    def input(self, name: str, **settings: object) -> Service:
        """One more stream that comes in."""
        self._lines["inputs", name] = sys._getframe(1).f_lineno
        self._inputs[name] = settings
        return self

    def op(self, op: str, **arguments: object) -> Service:
        """The next operator; an argument that is a word of Python has an underscore after it (`as_`)."""
        self._lines["ops", len(self._ops)] = sys._getframe(1).f_lineno
        self._ops.append({"op": op} | {key.rstrip("_"): value for key, value in arguments.items()})
        return self

    def constraint(self, attribute: str, text: str) -> Service:
        """The range of an attribute of what comes out."""
        self._lines["constraints", attribute] = sys._getframe(1).f_lineno
        self._constraints[attribute] = text
        return self

    def definition(self) -> Definition:
        """What was built; DefinitionError lists what is wrong with its form."""
        document = {
            **self._head,
            "inputs": self._inputs,
            "ops": self._ops,
            "constraints": self._constraints,
        }
        return definitions_of(document, self._file, self._lines)[0]

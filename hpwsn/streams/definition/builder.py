"""A builder for service definitions in Python; the arguments are the keys of the TOML format.

::

    flow = (
        Service("urn:example:flow", topic="traffic:flow")
        .input("anpr", source="topic", topic="traffic:anpr", schema="cid STRING, vid STRING, time TIMESTAMP")
        .op("count", by="cid", window="60 s", attribute="vid", output="flow")
        .constraint("flow", "> 0")
    )

An operator `function` takes a Python function or a lambda as well as `"module:name"`. The builder records the
line of each call, so that errors can name it. It checks nothing itself:
hpwsn.streams.definition.definition_toml checks the form.
"""

from __future__ import annotations

import sys

from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.definition_toml import (
    ServiceForm,
    definitions_from_mapping,
    forms_from_mapping,
)
from hpwsn.streams.definition.positions import Path


class Service:
    """A definition under construction; each method adds to it and returns the same object."""

    def __init__(self, uri: str, *, topic: str, description: str = "", order: str = "key") -> None:
        self._file = sys._getframe(1).f_code.co_filename
        self._inputs: dict[str, dict[str, object]] = {}
        self._ops: list[dict[str, object]] = []
        self._constraints: dict[str, str] = {}
        self._lines: dict[Path, int] = {(): sys._getframe(1).f_lineno}
        self._head = {"uri": uri, "topic": topic, "description": description, "order": order}

    def input(self, name: str, **settings: object) -> Service:
        """Add an input stream."""
        self._lines["inputs", name] = sys._getframe(1).f_lineno
        self._inputs[name] = settings
        return self

    def op(self, op: str, **arguments: object) -> Service:
        """Append an operator; write an argument that is a Python keyword with an underscore (`as_`)."""
        self._lines["ops", len(self._ops)] = sys._getframe(1).f_lineno
        self._ops.append({"op": op} | {key.rstrip("_"): value for key, value in arguments.items()})
        return self

    def constraint(self, attribute: str, text: str) -> Service:
        """Set the range of an output attribute."""
        self._lines["constraints", attribute] = sys._getframe(1).f_lineno
        self._constraints[attribute] = text
        return self

    def definition(self) -> Definition:
        """Return the definition; DefinitionError lists everything wrong with its form."""
        return definitions_from_mapping(self._document(), self._file, self._lines)[0]

    def form(self) -> ServiceForm:
        """Return the definition with everything that is wrong with its form."""
        return forms_from_mapping(self._document(), self._file, self._lines)[0]

    def _document(self) -> dict[str, object]:
        return {
            **self._head,
            "inputs": self._inputs,
            "ops": self._ops,
            "constraints": self._constraints,
        }

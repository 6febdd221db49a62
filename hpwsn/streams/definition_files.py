"""Definitions from files: TOML, or Python that builds them, with the services that they take in.

Reads files and runs a Python one; refuses what cannot be read, with its name. An input of another service
gets that service's topic and schema from the same files, or from the file that it names.
"""

import runpy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition, Input
from hpwsn.streams.definition.definition_toml import parse_document, with_input
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem
from hpwsn.streams.plan.plan import plan_of


def load(*paths: Path | str) -> list[Definition]:
    """The services of the files, each checked whole, with what it takes in."""
    definitions = [one for path in paths for one in _read(Path(path))]
    _check_unique(definitions)
    resolved = _Resolver(definitions)
    return [resolved.of(one) for one in definitions]


def _read(path: Path) -> list[Definition]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DefinitionError([Problem(Place(str(path)), f"cannot be read: {reason}")]) from None
    return _run(path) if path.suffix == ".py" else parse_document(text, str(path))


def _run(path: Path) -> list[Definition]:
    """The services that a Python file leaves in its names."""
    try:
        names = runpy.run_path(str(path))
    except DefinitionError:
        raise
    except Exception as error:
        problem = Problem(Place(str(path)), f"ends with {type(error).__name__}: {error}")
        raise DefinitionError([problem]) from error
    built = [one.definition() for one in names.values() if isinstance(one, Service)]
    built += [one for one in names.values() if isinstance(one, Definition)]
    if not built:
        raise DefinitionError([Problem(Place(str(path)), "builds no Service; assign one to a name")])
    return built


def _check_unique(definitions: Iterable[Definition]) -> None:
    seen: dict[str, Definition] = {}
    for one in definitions:
        if one.uri in seen:
            message = f"is the uri of another service, at {seen[one.uri].place}"
            raise DefinitionError([Problem(one.place, message, "service", one.uri)])
        seen[one.uri] = one


class _Resolver:
    """Gives inputs of other services what those give out; a service that takes in itself is refused."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._known: dict[str, Definition] = {one.uri: one for one in definitions}
        self._done: dict[str, Definition] = {}
        self._under_way: list[str] = []

    def of(self, definition: Definition) -> Definition:
        """The definition with all its inputs known, checked."""
        if definition.uri in self._done:
            return self._done[definition.uri]
        if definition.uri in self._under_way:
            ring = " → ".join([*self._under_way, definition.uri])
            raise DefinitionError([Problem(definition.place, f"takes in itself: {ring}", "service")])
        self._under_way.append(definition.uri)
        for one in definition.inputs.values():
            if one.source == "service" and not (one.schema and one.text("topic")):
                definition = with_input(definition, self._input(one))
        plan_of(definition)
        self._under_way.pop()
        self._done[definition.uri] = definition
        return definition

    def _input(self, one: Input) -> Input:
        other = self._find(one)
        shape = plan_of(self.of(other)).output
        settings: Mapping[str, object] = {"topic": other.topic, **one.settings}
        time = one.time or shape.time
        return replace(one, settings=settings, schema=one.schema or str(shape.schema), time=time)

    def _find(self, one: Input) -> Definition:
        uri = one.text("service")
        if uri not in self._known and one.text("file"):
            beside = Path(one.place.file).parent / one.text("file")
            self._known = {**{other.uri: other for other in _read(beside)}, **self._known}
        if uri not in self._known:
            message = f"{uri} is in none of these files: give its file, or its topic and schema"
            raise DefinitionError([Problem(one.place, message, f"input {one.name}", "service")])
        return self._known[uri]

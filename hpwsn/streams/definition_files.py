"""Loads definitions from TOML files, or from Python files that build them.

A Python file is executed. DefinitionError names a file that cannot be read. An input whose source is another
service gets its topic and schema from that service, which is in one of the files or in the file that the
input names.
"""

import runpy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition, Input
from hpwsn.streams.definition.definition_toml import parse_document, replace_input
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem
from hpwsn.streams.plan.plan import build_plan


def load(*paths: Path | str) -> list[Definition]:
    """The checked services of the files, with the topics and schemas of inputs that are services."""
    definitions = [one for path in paths for one in _read(Path(path))]
    _check_unique(definitions)
    resolver = _Resolver(definitions)
    return [resolver.resolve(one) for one in definitions]


def _read(path: Path) -> list[Definition]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DefinitionError([Problem(Place(str(path)), f"cannot be read: {reason}")]) from None
    return _run(path) if path.suffix == ".py" else parse_document(text, str(path))


def _run(path: Path) -> list[Definition]:
    """The services that a Python file assigns to its global names."""
    try:
        names = runpy.run_path(str(path))
    except DefinitionError:
        raise
    except Exception as error:
        problem = Problem(Place(str(path)), f"failed with {type(error).__name__}: {error}")
        raise DefinitionError([problem]) from error
    built = [one.definition() for one in names.values() if isinstance(one, Service)]
    built += [one for one in names.values() if isinstance(one, Definition)]
    if not built:
        raise DefinitionError(
            [Problem(Place(str(path)), "does not build a Service; assign one to a global name")]
        )
    return built


def _check_unique(definitions: Iterable[Definition]) -> None:
    seen: dict[str, Definition] = {}
    for one in definitions:
        if one.uri in seen:
            message = f"is already the uri of the service at {seen[one.uri].place}; use another uri"
            raise DefinitionError([Problem(one.place, message, "service", one.uri)])
        seen[one.uri] = one


class _Resolver:
    """Completes inputs that are other services; DefinitionError if a service is its own input."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._known: dict[str, Definition] = {one.uri: one for one in definitions}
        self._done: dict[str, Definition] = {}
        self._resolving: list[str] = []

    def resolve(self, definition: Definition) -> Definition:
        """The checked definition, with topic and schema of every input."""
        if definition.uri in self._done:
            return self._done[definition.uri]
        if definition.uri in self._resolving:
            cycle = " → ".join([*self._resolving, definition.uri])
            raise DefinitionError([Problem(definition.place, f"has itself as an input: {cycle}", "service")])
        self._resolving.append(definition.uri)
        for one in definition.inputs.values():
            if one.source == "service" and not (one.schema and one.text("topic")):
                definition = replace_input(definition, self._input(one))
        build_plan(definition)
        self._resolving.pop()
        self._done[definition.uri] = definition
        return definition

    def _input(self, one: Input) -> Input:
        other = self._find(one)
        stream_type = build_plan(self.resolve(other)).output
        settings: Mapping[str, object] = {"topic": other.topic, **one.settings}
        time = one.time or stream_type.time
        return replace(one, settings=settings, schema=one.schema or str(stream_type.schema), time=time)

    def _find(self, one: Input) -> Definition:
        uri = one.text("service")
        if uri not in self._known and one.text("file"):
            file = Path(one.place.file).parent / one.text("file")
            self._known = {**{other.uri: other for other in _read(file)}, **self._known}
        if uri not in self._known:
            message = f"{uri} is in none of these files; give its file, or its topic and schema"
            raise DefinitionError([Problem(one.place, message, f"input {one.name}", "service")])
        return self._known[uri]

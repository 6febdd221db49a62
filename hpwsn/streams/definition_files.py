"""Loads definitions from TOML files, or from Python files that build them.

A Python file is executed. All problems of all files are collected and reported together, sorted by file and
line. An input whose source is another service gets its topic and schema from that service, which is in one of
the files or in the file that the input names. A query in SQL gets its schema from Spark, if Spark is there.
"""

import runpy
import traceback
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import Definition, Input
from hpwsn.streams.definition.definition_toml import ServiceForm, read_document, replace_input
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem
from hpwsn.streams.operators.sql import Analyse
from hpwsn.streams.plan.plan import Plan, check_plan


def load(*paths: Path | str, analyse: Analyse | None = None) -> list[Definition]:
    """The checked services of the files, with the topics and schemas of inputs that are services.

    `analyse` asks Spark for the schemas of queries; without it, a query must have a schema. DefinitionError
    lists everything that is wrong with the files.
    """
    loader = _Loader(analyse)
    forms = [one for path in paths for one in loader.read(Path(path))]
    loader.add(forms)
    plans = [loader.plan(one) for one in forms]
    if loader.problems:
        files = [str(path) for path in paths]
        raise DefinitionError(_sorted(loader.problems, files))
    return [plan.definition for plan in plans if plan is not None]


def _sorted(problems: Iterable[Problem], files: list[str]) -> list[Problem]:
    """The problems by file, in the given order of the files, and by line; each once."""
    order = {file: number for number, file in reversed(list(enumerate(files)))}
    return sorted(
        dict.fromkeys(problems), key=lambda one: (order.get(one.place.file, len(files)), one.place.line)
    )


class _Loader:
    """Reads files and plans their services; completes inputs that are other services."""

    def __init__(self, analyse: Analyse | None) -> None:
        self.problems: list[Problem] = []
        self._analyse = analyse
        self._known: dict[str, ServiceForm] = {}
        self._plans: dict[str, Plan | None] = {}
        self._planning: list[str] = []

    def read(self, path: Path) -> list[ServiceForm]:
        """The services of a file; none, and a problem, if the file cannot be read."""
        try:
            return _read(path)
        except DefinitionError as error:
            self.problems += error.problems
            return []

    def add(self, forms: Iterable[ServiceForm]) -> None:
        """Make services known to others by their uris; a problem if two have the same."""
        for one in forms:
            definition = one.definition
            known = self._known.setdefault(definition.uri, one).definition
            if definition.uri and known is not definition:
                message = f"is already the uri of the service at {known.place}; use another uri"
                self.problems.append(Problem(definition.place, message, "service", definition.uri))

    def plan(self, form: ServiceForm) -> Plan | None:
        """The plan of a service, with topic and schema of every input; None if its output is unknown."""
        definition = form.definition
        if self._known.get(definition.uri) is form and definition.uri in self._plans:
            return self._plans[definition.uri]
        if definition.uri and definition.uri in self._planning:
            cycle = " → ".join([*self._planning, definition.uri])
            self.problems.append(Problem(definition.place, f"has itself as an input: {cycle}", "service"))
            return None
        self._planning.append(definition.uri)
        found = self._plan(form)
        self._planning.pop()
        if self._known.get(definition.uri) is form:
            self._plans[definition.uri] = found
        return found

    def _plan(self, form: ServiceForm) -> Plan | None:
        definition, problems = form.definition, list(form.problems)
        for one in definition.inputs.values():
            if one.source == "service" and not (one.schema and one.text("topic")):
                completed = self._input(one)
                if completed is None:
                    # The cause is reported there; nothing is known about this input.
                    problems.append(Problem(one.place, "is unknown", f"input {one.name}", "schema"))
                else:
                    definition = replace_input(definition, completed)
        plan, found = check_plan(definition, self._analyse, problems)
        self.problems += [*form.problems, *found]
        return plan

    def _input(self, one: Input) -> Input | None:
        if not one.text("service"):
            return None
        form = self._find(one)
        other = None if form is None else self.plan(form)
        if other is None:
            return None
        stream_type = other.output
        return replace(
            one,
            settings={"topic": other.definition.topic, **one.settings},
            schema=one.schema or str(stream_type.schema),
            time=one.time or stream_type.time,
        )

    def _find(self, one: Input) -> ServiceForm | None:
        uri = one.text("service")
        if uri not in self._known and one.text("file"):
            file = Path(one.place.file).parent / one.text("file")
            known = set(self._known)
            self.add(form for form in self.read(file) if form.definition.uri not in known)
        if uri not in self._known:
            message = f"{uri} is in none of these files; give its file, or its topic and schema"
            self.problems.append(Problem(one.place, message, f"input {one.name}", "service"))
        return self._known.get(uri)


def _read(path: Path) -> list[ServiceForm]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise DefinitionError([Problem(Place(str(path)), f"cannot be read: {reason}")]) from None
    return _run(path) if path.suffix == ".py" else read_document(text, str(path))


def _run(path: Path) -> list[ServiceForm]:
    """The services that a Python file assigns to its global names."""
    try:
        names = runpy.run_path(str(path))
    except DefinitionError:
        raise
    except Exception as error:
        place = Place(str(path), _line(error, str(path)))
        problem = Problem(place, f"failed with {type(error).__name__}: {error}")
        raise DefinitionError([problem]) from error
    # A service may have several names.
    built = {id(one): one for one in names.values() if isinstance(one, Service | Definition)}
    if not built:
        raise DefinitionError(
            [Problem(Place(str(path)), "does not build a Service; assign one to a global name")]
        )
    return [_form(one) for one in built.values()]


def _form(built: Service | Definition) -> ServiceForm:
    return built.form() if isinstance(built, Service) else ServiceForm(built)


def _line(error: Exception, file: str) -> int:
    """The line of the file at which the error was raised; 0 if the error does not say."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return (lines[-1] if lines else 0) or 0

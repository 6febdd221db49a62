"""Reads service definitions from TOML, or from the same structure as nested mappings.

The form: `uri`, `topic`, `description`, `order`; `[inputs.NAME]` with `source` and its settings; `[[ops]]` in
order; `[constraints]` by attribute. A file of several services has each under `[[services]]`. All errors of
form are collected, each with its line. The other parts of a service are still read, so that
hpwsn.streams.plan.plan can check their meaning in the same run.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hpwsn.settings.quantities import parse_duration
from hpwsn.streams.definition.definition import (
    FORMATS,
    MAX_PARTITIONS,
    ORDERS,
    SOURCES,
    Constraint,
    Definition,
    Input,
    Op,
)
from hpwsn.streams.definition.positions import Path, line_of, positions_of
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem, suggestion
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

_SERVICE_KEYS = ("uri", "topic", "description", "order", "inputs", "ops", "constraints")
_INPUT_KEYS = ("source", "time", "lateness")
_PARTITION_KEYS = ("key", "partitions")
_AT_LINE = re.compile(r"at line (\d+)")
_OP_KEYS = ("op", "input", "output", "window", "slide", "by")


@dataclass(frozen=True, slots=True)
class ServiceForm:
    """A service as read, and the problems of its form; a part with a problem has default values."""

    definition: Definition
    problems: tuple[Problem, ...] = ()


def parse_document(text: str, file: str = "") -> list[Definition]:
    """The services of a TOML text; DefinitionError lists everything wrong with its form."""
    return _without_problems(read_document(text, file))


def read_document(text: str, file: str = "") -> list[ServiceForm]:
    """The services of a TOML text, each with its problems; DefinitionError if the text is not TOML."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = _AT_LINE.search(str(error))
        place = Place(file, int(line[1]) if line else len(text.splitlines()))
        raise DefinitionError([Problem(place, f"is not TOML: {error}")]) from None
    return forms_from_mapping(document, file, positions_of(text))


def definitions_from_mapping(
    document: Mapping[str, object], file: str = "", positions: Mapping[Path, int] | None = None
) -> list[Definition]:
    """The services of a document that has the structure of a TOML file, as mappings and lists."""
    return _without_problems(forms_from_mapping(document, file, positions))


def forms_from_mapping(
    document: Mapping[str, object], file: str = "", positions: Mapping[Path, int] | None = None
) -> list[ServiceForm]:
    """The services of a document as mappings and lists, each with its problems."""
    reader = _Reader(file, positions or {})
    return list(reader.services(document))


def _without_problems(forms: list[ServiceForm]) -> list[Definition]:
    problems = [problem for one in forms for problem in one.problems]
    if problems:
        raise DefinitionError(problems)
    return [one.definition for one in forms]


class _Reader:
    """Reads one document and collects its problems."""

    def __init__(self, file: str, positions: Mapping[Path, int]) -> None:
        self.file = file
        self.positions = positions
        self.problems: list[Problem] = []

    def services(self, document: Mapping[str, object]) -> Iterator[ServiceForm]:
        if "services" not in document:
            yield self._form(document, ())
            return
        self._known(document, ("services",), (), "file")
        tables = self._tables(document["services"], ("services",))
        if not tables:
            if not self.problems:
                self._problem(("services",), "has no service; write [[services]]", attribute="services")
            raise DefinitionError(self.problems)
        for number, table in enumerate(tables):
            yield self._form(table, ("services", number))

    def _form(self, table: Mapping[str, object], path: Path) -> ServiceForm:
        definition = self.service(table, path)
        problems, self.problems = self.problems, []
        return ServiceForm(definition, tuple(problems))

    def service(self, table: Mapping[str, object], path: Path) -> Definition:
        self._known(table, _SERVICE_KEYS, path, "service")
        uri = self._text(table, "uri", path, "service", needed=True)
        topic = self._text(table, "topic", path, "service", needed=True)
        self._check_topic(topic, (*path, "topic"), "service")
        inputs = self._table(table.get("inputs", {}), (*path, "inputs"))
        if not inputs:
            self._problem((*path, "inputs"), "write at least one [inputs.NAME]", "service", "inputs")
        return Definition(
            uri,
            topic,
            {name: self.input(name, one, (*path, "inputs", name)) for name, one in inputs.items()},
            tuple(self.op(n, one, (*path, "ops", n)) for n, one in self._ops(table, path)),
            tuple(self.constraints(table, (*path, "constraints"))),
            self._text(table, "description", path, "service"),
            self._place(path),
            self._order(table, path),
        )

    def _order(self, table: Mapping[str, object], path: Path) -> str:
        order = table.get("order", ORDERS[0])
        if isinstance(order, str) and order in ORDERS:
            return order
        self._problem((*path, "order"), f"must be {' or '.join(ORDERS)}, not {order!r}", "service", "order")
        return ORDERS[0]

    def input(self, name: str, value: object, path: Path) -> Input:
        part = f"input {name}"
        if not isinstance(value, Mapping):
            self._problem(path, f"must be a table, not {value!r}", part)
            return Input(name, "", place=self._place(path))
        table: Mapping[str, object] = value
        source = self._text(table, "source", path, part, needed=True)
        if source not in SOURCES:
            if source:
                self._problem(
                    (*path, "source"), f"{source!r} is unknown; {suggestion(source, SOURCES)}", part
                )
            return Input(name, source, schema=str(table.get("schema", "")), place=self._place(path))
        needed, optional = SOURCES[source]
        self._check_partitions(table, source, path, part)
        self._known(table, (*_INPUT_KEYS, *_PARTITION_KEYS, *needed, *optional), path, part)
        for key in needed:
            if key not in table:
                self._problem(path, f"is missing; source {source} requires it", part, key)
        one = Input(
            name,
            source,
            {key: table[key] for key in (*needed, *optional) if key in table and key != "schema"},
            self._text(table, "schema", path, part),
            self._text(table, "time", path, part),
            self._seconds(table, "lateness", path, part),
            self._place(path),
        )
        self._check_settings(one, path, part)
        return one

    def _check_partitions(self, table: Mapping[str, object], source: str, path: Path, part: str) -> None:
        if "key" not in SOURCES[source][1]:
            able = ", ".join(name for name, (_, optional) in SOURCES.items() if "key" in optional)
            for key in _PARTITION_KEYS:
                if key in table:
                    message = f"is not a setting of source {source}; remove it, or use a source of {able}"
                    self._problem((*path, key), message, part, key)
            return
        number = table.get("partitions", 1)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_PARTITIONS:
            message = f"must be a number from 1 to {MAX_PARTITIONS}, not {number!r}"
            self._problem((*path, "partitions"), message, part, "partitions")

    def op(self, number: int, table: Mapping[str, object], path: Path) -> Op:
        name = self._text(table, "op", path, f"operator {number + 1}", needed=True)
        part = f"operator {number + 1} ({name})"
        by = table.get("by", [])
        columns = [by] if isinstance(by, str) else by
        if not isinstance(columns, list | tuple) or not all(isinstance(one, str) for one in columns):
            self._problem((*path, "by"), f"must be attribute names, not {by!r}", part, "by")
            columns = []
        return Op(
            name,
            self._text(table, "input", path, part),
            self._text(table, "output", path, part),
            self._text(table, "window", path, part),
            self._text(table, "slide", path, part),
            tuple(columns),
            {key: value for key, value in table.items() if key not in _OP_KEYS},
            self._place(path),
            {key: self._place((*path, key)) for key in table},
        )

    def constraints(self, table: Mapping[str, object], path: Path) -> Iterator[Constraint]:
        for name, text in self._table(table.get("constraints", {}), path).items():
            if isinstance(text, str):
                yield Constraint(name, text, self._place((*path, name)))
            else:
                self._problem(
                    (*path, name), f'must be a text such as "> 0", not {text!r}', "constraint", name
                )

    def _ops(self, table: Mapping[str, object], path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
        yield from enumerate(self._tables(table.get("ops", []), (*path, "ops")))

    def _check_settings(self, one: Input, path: Path, part: str) -> None:
        settings = one.settings
        kind = settings.get("format")
        if "format" in settings and kind not in FORMATS:
            self._problem((*path, "format"), f"must be {', '.join(FORMATS)}, not {kind!r}", part, "format")
        rate = settings.get("rate", 1)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or rate <= 0:
            self._problem((*path, "rate"), f"must be events a second, above 0, not {rate!r}", part, "rate")
        port = settings.get("port", 1)
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            self._problem((*path, "port"), f"must be a port from 1 to 65535, not {port!r}", part, "port")
        for key in ("topic", "path", "servers", "host", "service", "file", "key", "past"):
            if key in settings and not (isinstance(settings[key], str) and settings[key]):
                self._problem((*path, key), f"must be a text, not {settings[key]!r}", part, key)
        if one.source != "kafka" and isinstance(settings.get("topic"), str):
            self._check_topic(one.text("topic"), (*path, "topic"), part)

    def _check_topic(self, topic: str, path: Path, part: str) -> None:
        if not topic:
            return
        try:
            Topic.parse(topic)
        except InvalidTopicExpressionFault as error:
            self._problem(path, str(error), part, "topic")

    def _text(
        self, table: Mapping[str, object], key: str, path: Path, part: str, needed: bool = False
    ) -> str:
        value = table.get(key)
        if isinstance(value, str) and (value.strip() or not needed):
            return value
        if value is not None:
            self._problem((*path, key), f"must be a text, not {value!r}", part, key)
        elif needed:
            self._problem(path, "is missing", part, key)
        return ""

    def _seconds(self, table: Mapping[str, object], key: str, path: Path, part: str) -> float:
        value = table.get(key, 0)
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds: float | None = float(value)
        else:
            seconds = parse_duration(value)
        if seconds is None or not 0 <= seconds <= 366 * 86400:
            self._problem((*path, key), f'must be a duration such as "10 s", not {value!r}', part, key)
            return 0.0
        return seconds

    def _known(self, table: Mapping[str, object], keys: tuple[str, ...], path: Path, part: str) -> None:
        once = tuple(dict.fromkeys(keys))
        for key in table:
            if key not in once:
                self._problem((*path, key), f"is not a setting here; {suggestion(key, once)}", part, key)

    def _table(self, value: object, path: Path) -> Mapping[str, object]:
        if isinstance(value, Mapping):
            return value
        self._problem(path, f"must be a table, not {value!r}", attribute=str(path[-1]))
        return {}

    def _tables(self, value: object, path: Path) -> list[Mapping[str, object]]:
        if isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value):
            return list(value)
        self._problem(path, f"must be tables, each under [[{path[-1]}]]", attribute=str(path[-1]))
        return []

    def _place(self, path: Path) -> Place:
        return Place(self.file, line_of(self.positions, path))

    def _problem(self, path: Path, message: str, part: str = "", attribute: str = "") -> None:
        self.problems.append(Problem(self._place(path), message, part, attribute))


def replace_input(definition: Definition, changed: Input) -> Definition:
    """The definition with `changed` in place of its input of the same name."""
    return replace(definition, inputs={**definition.inputs, changed.name: changed})

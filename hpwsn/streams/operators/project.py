"""project(A, A', M, V): select attributes, rename some by a map, add new ones with a default value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    BaseStep,
    Findings,
    OperatorError,
    OperatorKind,
    StreamType,
    attribute_of,
    table_argument,
    texts_argument,
)
from hpwsn.streams.definition.schema import Event, Schema, Type, Value, type_of, value_of


@dataclass(frozen=True)
class Project(BaseStep):
    """`kept` maps each selected attribute to its new name, `added` each new attribute to its value."""

    kept: Mapping[str, str]
    added: dict[str, Value]

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """Each event with the selected and the added attributes."""
        return [{self.kept[old]: event[old] for old in self.kept} | self.added for event in streams[0]]


def build(op: Op, inputs: Sequence[StreamType]) -> Project:
    """Check `attributes` (default: all), `rename` and `defaults`."""
    stream = inputs[0]
    findings = Findings()
    with findings:
        kept = _kept(op, stream)
    added: dict[str, tuple[Type, Value]] = {}
    with findings:
        for name, value in table_argument(op, "defaults").items():
            with findings:
                added[name] = _default(name, value)
    findings.raise_all()
    for name in added:
        with findings:
            if name in kept.values():
                raise OperatorError("defaults", "exists already; defaults are for new attributes", name)
    findings.raise_all()
    if not kept and not added:
        raise OperatorError("attributes", "selects no attribute; name at least one")
    attributes = [(new, stream.schema[old]) for old, new in kept.items()]
    attributes += [(name, kind) for name, (kind, _) in added.items()]
    stream_type = replace(
        stream,
        name=op.output or stream.name,
        schema=Schema(tuple(attributes)),
        time=kept.get(stream.time, ""),
    )
    return Project((stream,), stream_type, kept, {name: value for name, (_, value) in added.items()})


def _kept(op: Op, stream: StreamType) -> dict[str, str]:
    chosen = texts_argument(op, "attributes") if "attributes" in op.arguments else stream.schema.names
    renamed = table_argument(op, "rename")
    findings = Findings()
    for name in chosen:
        with findings:
            attribute_of(stream, name, "attributes")
    for old, new in renamed.items():
        with findings:
            _check_renamed(stream, old, new, chosen)
    findings.raise_all()
    kept = {name: str(renamed.get(name, name)) for name in chosen}
    if len(kept) < len(chosen) or len(set(kept.values())) < len(kept):
        raise OperatorError(
            "rename" if renamed else "attributes", "gives two attributes the same name; use different names"
        )
    return kept


def _check_renamed(stream: StreamType, old: str, new: object, chosen: Sequence[str]) -> None:
    attribute_of(stream, old, "rename")
    if old not in chosen:
        raise OperatorError("rename", "is not among the selected attributes; add it to attributes", old)
    if not isinstance(new, str) or not new:
        raise OperatorError("rename", f"must be renamed to a text, not {new!r}", old)


def _default(name: str, value: object) -> tuple[Type, Value]:
    kind = type_of(value)
    if kind is None:
        raise OperatorError(
            "defaults", f"cannot be {value!r}; use a boolean, number, text, date or timestamp", name
        )
    return kind, value_of(value, kind, name)


KIND = OperatorKind(
    "project",
    build,
    "choose attributes, rename them, add new ones",
    optional=("attributes", "rename", "defaults"),
)

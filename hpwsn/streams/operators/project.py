"""project(A, A', M, V): choose attributes, rename some by a map, add new ones with their defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hpwsn.streams.definition.definition import Op
from hpwsn.streams.definition.operator import (
    Before,
    Kind,
    Refused,
    Shape,
    attribute_of,
    table_argument,
    texts_argument,
)
from hpwsn.streams.definition.schema import Event, Schema, Type, Value, type_of, value_of


@dataclass(frozen=True)
class Project(Before):
    """`kept` is the new name of each attribute that stays, `added` the value of each new one."""

    kept: Mapping[str, str]
    added: dict[str, Value]

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """Each event anew."""
        return [{self.kept[old]: event[old] for old in self.kept} | self.added for event in streams[0]]


def build(op: Op, inputs: Sequence[Shape]) -> Project:
    """`attributes` (default: all), `rename`, `defaults`."""
    stream = inputs[0]
    kept = _kept(op, stream)
    added = dict(_default(name, value) for name, value in table_argument(op, "defaults").items())
    taken = set(kept.values())
    for name in added:
        if name in taken:
            raise Refused("defaults", "is there already; defaults are for new attributes", name)
    if not kept and not added:
        raise Refused("attributes", "leaves no attribute at all")
    attributes = [(new, stream.schema[old]) for old, new in kept.items()]
    attributes += [(name, kind) for name, (kind, _) in added.items()]
    shape = replace(
        stream,
        name=op.output or stream.name,
        schema=Schema(tuple(attributes)),
        time=kept.get(stream.time, ""),
    )
    return Project((stream,), shape, kept, {name: value for name, (_, value) in added.items()})


def _kept(op: Op, stream: Shape) -> dict[str, str]:
    chosen = texts_argument(op, "attributes") if "attributes" in op.arguments else stream.schema.names
    renamed = table_argument(op, "rename")
    for name in chosen:
        attribute_of(stream, name, "attributes")
    for old, new in renamed.items():
        attribute_of(stream, old, "rename")
        if old not in chosen:
            raise Refused("rename", "is not among the attributes that are chosen", old)
        if not isinstance(new, str) or not new:
            raise Refused("rename", f"must become a name, not {new!r}", old)
    kept = {name: str(renamed.get(name, name)) for name in chosen}
    if len(kept) < len(chosen) or len(set(kept.values())) < len(kept):
        raise Refused("rename" if renamed else "attributes", "gives two attributes one name")
    return kept


def _default(name: str, value: object) -> tuple[str, tuple[Type, Value]]:
    kind = type_of(value)
    if kind is None:
        raise Refused("defaults", f"cannot be {value!r}", name)
    return name, (kind, value_of(value, kind, name))


KIND = Kind(
    "project",
    build,
    "choose attributes, rename them, add new ones",
    optional=("attributes", "rename", "defaults"),
)

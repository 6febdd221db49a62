"""The definition of a stream data service: inputs, operators in order, output topic, constraints.

Owns the data (spec of stream data services, "Model") and nothing else: a TOML file becomes one in
hpwsn.streams.definition.definition_toml, a Python program builds one with hpwsn.streams.definition.builder,
and hpwsn.streams.plan.plan judges what it means. Texts are kept as they were written, with their places, so
that an error can show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpwsn.streams.definition.problems import NOWHERE, Place

SOURCES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "topic": (("topic", "schema"), ()),
    "files": (("path", "format", "schema"), ("rate",)),
    "kafka": (("servers", "topic", "schema"), ()),
    "rate": ((), ("rate",)),
    "socket": (("host", "port"), ("schema",)),
    "service": (("service",), ("file", "topic", "schema")),
}
"""The settings of each kind of source: those it needs, and those it may have."""

FORMATS = ("csv", "json", "parquet")


@dataclass(frozen=True, slots=True)
class Input:
    """A stream that comes in: its source with the settings, and its schema in DDL.

    `time` is the attribute that holds the time of an event (empty: `time`, where there is such a TIMESTAMP),
    `lateness` how many seconds an event may come behind the latest.
    """

    name: str
    source: str
    settings: Mapping[str, object] = field(default_factory=dict)
    schema: str = ""
    time: str = ""
    lateness: float = 0.0
    place: Place = NOWHERE

    def text(self, setting: str) -> str:
        """A setting as text; empty where it is not set."""
        return str(self.settings.get(setting, ""))


@dataclass(frozen=True, slots=True)
class Op:
    """One operator. `input` is the stream it takes (empty: the one before), `output` the name of what it
    gives; `arguments` are its own; `places` says where each key stands."""

    op: str
    input: str = ""
    output: str = ""
    window: str = ""
    slide: str = ""
    by: tuple[str, ...] = ()
    arguments: Mapping[str, object] = field(default_factory=dict)
    place: Place = NOWHERE
    places: Mapping[str, Place] = field(default_factory=dict)

    def at(self, key: str) -> Place:
        """Where a key stands, or the operator where it has none."""
        return self.places.get(key, self.place)


@dataclass(frozen=True, slots=True)
class Constraint:
    """The range of one attribute of what comes out, as it was written."""

    attribute: str
    text: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Definition:
    """A service."""

    uri: str
    topic: str
    inputs: Mapping[str, Input]
    ops: tuple[Op, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    description: str = ""
    place: Place = NOWHERE

    @property
    def ranges(self) -> dict[str, str]:
        """The constraints by attribute, as the broker's check of requests takes them."""
        return {constraint.attribute: constraint.text for constraint in self.constraints}

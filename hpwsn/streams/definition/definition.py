"""The definition of a stream data service: inputs, operators in order, output topic, constraints.

Owns the data (the model of the paper on stream data services). hpwsn.streams.definition.definition_toml
reads a definition from TOML, hpwsn.streams.definition.builder builds one in Python, and
hpwsn.streams.plan.plan checks its meaning. Texts are kept as written, with their file and line, so that an
error can show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpwsn.streams.definition.problems import NOWHERE, Place

SOURCES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "topic": (("topic", "schema"), ("key", "partitions", "past")),
    "files": (("path", "format", "schema"), ("rate",)),
    "kafka": (("servers", "topic", "schema"), ()),
    "rate": ((), ("rate",)),
    "socket": (("host", "port"), ("schema",)),
    "service": (("service",), ("file", "topic", "schema", "key", "partitions")),
}
"""The settings of each source: the required ones and the optional ones."""

FORMATS = ("csv", "json", "parquet")
ORDERS = ("key", "any")
MAX_PARTITIONS = 64
"""Maximum partitions in which an input is read."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input stream: its source with the settings, and its schema in DDL.

    `time` is the attribute that holds the event time; if empty, a TIMESTAMP attribute named `time` is used.
    `lateness` is how many seconds an event may arrive after a later one. The setting `key` is an attribute:
    events with the same value are read in order, although the input is read in several `partitions`. The
    setting `past` is a folder of a node's kept readings, with which the stream begins.
    """

    name: str
    source: str
    settings: Mapping[str, object] = field(default_factory=dict)
    schema: str = ""
    time: str = ""
    lateness: float = 0.0
    place: Place = NOWHERE

    def text(self, setting: str) -> str:
        """A setting as text; empty if it is not set."""
        return str(self.settings.get(setting, ""))


@dataclass(frozen=True, slots=True)
class Op:
    """One operator of a definition.

    `input` is the name of its input stream; if empty, the output of the preceding operator. `output` is the
    name of its output stream. `arguments` are the keys of this operator kind. `places` has the file and line
    of each key.
    """

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
        """The place of a key, or of the operator if the key is not written."""
        return self.places.get(key, self.place)


@dataclass(frozen=True, slots=True)
class Constraint:
    """The range of one output attribute, as written in the definition."""

    attribute: str
    text: str
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of one service.

    `order` is `key` if events of one key keep their order, and all events of an input without a key. It is
    `any` if the order does not matter.
    """

    uri: str
    topic: str
    inputs: Mapping[str, Input]
    ops: tuple[Op, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    description: str = ""
    place: Place = NOWHERE
    order: str = "key"

    @property
    def ranges(self) -> dict[str, str]:
        """The constraints by attribute, in the form that the broker checks subscriptions with."""
        return {constraint.attribute: constraint.text for constraint in self.constraints}


def input_sources(definition: Definition) -> dict[str, str]:
    """Each input with its source and topic or path, as the registration of a service describes it."""
    return {
        one.name: f"{one.source} {one.text('topic') or one.text('path')}".strip()
        for one in definition.inputs.values()
    }

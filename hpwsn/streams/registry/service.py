"""A stream data service as a node knows it: what the job that runs it says of it, checked.

Owns the form in JSON of what a job registers and of what `/streams` lists. What a service computes is its
definition's business, of which the node knows nothing but the result: topic, attributes, constraints. Pure;
the time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.matching.language.constraints import Constraint, parse_constraints
from hpwsn.matching.language.grammar import PredicateError
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

LONGEST = 4096
"""Characters in a uri, a description or any other text of a service."""
MOST = 1000
"""Attributes, constraints, inputs or figures of one service."""
STATES = ("running", "stopped")
_MAPS = ("attributes", "constraints", "inputs")


class ServiceRefused(HpwsnError):
    """What a job says of its service cannot be used."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service; `instance` is the run that publishes it, the same after a restart from its checkpoint."""

    uri: str
    topic: Topic
    instance: str
    description: str = ""
    state: str = "running"
    attributes: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    ranges: tuple[Constraint, ...] = field(default=(), compare=False)
    """The constraints as they are checked."""

    def document(self) -> dict[str, Any]:
        """What `parse_service` reads."""
        return {
            "topic": str(self.topic),
            "description": self.description,
            "instance": self.instance,
            "state": self.state,
            **{name: dict(getattr(self, name)) for name in _MAPS},
        }


def parse_service(uri: str, given: object) -> Service:
    """The service that a job describes; ServiceRefused names the field that is wrong."""
    if not isinstance(given, dict):
        raise ServiceRefused("a service is described by a JSON object")
    unknown = set(given) - {"topic", "description", "instance", "state", "figures", *_MAPS}
    if unknown:
        raise ServiceRefused(f"a service has no field {shown(min(unknown))}")
    texts = {name: _text(given, name) for name in ("topic", "instance", "description")}
    maps = {name: _texts(given, name) for name in _MAPS}
    state = given.get("state", "running")
    if state not in STATES:
        raise ServiceRefused(f"state is {shown(str(state))}; give {' or '.join(STATES)}")
    for name in ("topic", "instance"):
        if not texts[name]:
            raise ServiceRefused(f"a service needs a {name}")
    try:
        topic, ranges = Topic.parse(texts["topic"]), parse_constraints(maps["constraints"])
    except (InvalidTopicExpressionFault, PredicateError) as error:
        raise ServiceRefused(str(error)) from error
    if not uri or len(uri) > LONGEST or not uri.isprintable():
        raise ServiceRefused(f"the uri {shown(uri)} is not 1 to {LONGEST} characters without controls")
    return Service(uri, topic, texts["instance"], texts["description"], state, **maps, ranges=ranges)


def parse_figures(given: object) -> dict[str, float]:
    """The figures of a run (rates, lag, times), by name."""
    found = given.get("figures", {}) if isinstance(given, dict) else {}
    if not isinstance(found, dict) or len(found) > MOST:
        raise ServiceRefused(f"figures is no object of at most {MOST} numbers")
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or len(name) > LONGEST:
            raise ServiceRefused(f"the figure {shown(name)} is no number")
    return found


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise ServiceRefused(f"{name} is no text of at most {LONGEST} characters")
    return value


def _texts(given: Mapping[str, Any], name: str) -> dict[str, str]:
    found = given.get(name, {})
    if not isinstance(found, dict) or len(found) > MOST:
        raise ServiceRefused(f"{name} is no object of at most {MOST} texts")
    for key, value in found.items():
        if not isinstance(value, str) or len(value) > LONGEST or len(key) > LONGEST:
            raise ServiceRefused(f"{name}: {shown(key)} is no text of at most {LONGEST} characters")
    return found


def moment(time: float) -> str:
    """A time as JSON has it."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")

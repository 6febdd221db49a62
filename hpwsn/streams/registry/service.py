"""The description of a stream data service that its job registers at a node, checked.

Owns the JSON of a registration and of an entry in `/streams`. The node does not know the definition of a
service, only its result (topic, attributes, constraints) and the operators that its job names. Pure; the time
is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeGuard

from hpwsn.errors import HpwsnError
from hpwsn.matching.language.constraints import Constraint, parse_constraints
from hpwsn.matching.language.predicate_parser import PredicateError
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

MAX_TEXT = 4096
"""Maximum characters in a uri, a description or any other text of a service."""
MAX_ENTRIES = 1000
"""Maximum attributes, constraints, inputs, figures or operators of one service, and inputs of an operator."""
STATES = ("running", "stopped")
_WEB_ADDRESS = re.compile(r"https?://[!-~]+")
_MAPS = ("attributes", "constraints", "inputs")


class ServiceRefused(HpwsnError):
    """The description of a service is invalid, or the service cannot be registered."""


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """An operator: its name, its description, and where its rows come from.

    An input is the name of an input of the service, or the position of an earlier entry, from 0.
    """

    op: str
    inputs: tuple[str | int, ...] = ()
    text: str = ""

    def document(self) -> dict[str, Any]:
        """The entry in the form in which a job registers it."""
        return {"op": self.op, "inputs": list(self.inputs), "text": self.text}


@dataclass(frozen=True, slots=True)
class Service:
    """One service; `instance` identifies its run and stays the same after a restart from the checkpoint."""

    uri: str
    topic: Topic
    instance: str
    description: str = ""
    state: str = "running"
    attributes: Mapping[str, str] = field(default_factory=dict)
    constraints: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    ui: str = ""
    """The address of Spark's own page for the run; empty if there is none."""
    plan: tuple[PlanEntry, ...] | None = None
    """The operators of the service in order; None if its job does not tell them."""
    ranges: tuple[Constraint, ...] = field(default=(), compare=False)
    """The parsed constraints."""

    def document(self) -> dict[str, Any]:
        """The service in the form that `parse_service` reads."""
        return {
            "topic": str(self.topic),
            "description": self.description,
            "instance": self.instance,
            "state": self.state,
            **{name: dict(getattr(self, name)) for name in _MAPS},
            **({"ui": self.ui} if self.ui else {}),
            **({} if self.plan is None else {"plan": [entry.document() for entry in self.plan]}),
        }


def parse_service(uri: str, given: object) -> Service:
    """Parse the description of a service; ServiceRefused names the field that is wrong."""
    if not isinstance(given, dict):
        raise ServiceRefused(f"a service must be a JSON object, not {shown(str(given))}")
    unknown = set(given) - {"topic", "description", "instance", "state", "figures", "ui", "plan", *_MAPS}
    if unknown:
        raise ServiceRefused(f"unknown field {shown(min(unknown))}; remove it")
    texts = {name: _text(given, name) for name in ("topic", "instance", "description", "ui")}
    maps = {name: _texts(given, name) for name in _MAPS}
    state = given.get("state", "running")
    if state not in STATES:
        raise ServiceRefused(f"state is {shown(str(state))}; it must be {' or '.join(STATES)}")
    for name in ("topic", "instance"):
        if not texts[name]:
            raise ServiceRefused(f"{name} is missing or empty; a service requires it")
    try:
        topic, ranges = Topic.parse(texts["topic"]), parse_constraints(maps["constraints"])
    except (InvalidTopicExpressionFault, PredicateError) as error:
        raise ServiceRefused(str(error)) from error
    if not uri or len(uri) > MAX_TEXT or not uri.isprintable():
        raise ServiceRefused(f"the uri {shown(uri)} must be 1 to {MAX_TEXT} printable characters")
    if texts["ui"] and not _WEB_ADDRESS.fullmatch(texts["ui"]):
        raise ServiceRefused(f"ui is {shown(texts['ui'])}; it must be an address that begins with http")
    return Service(
        uri,
        topic,
        texts["instance"],
        texts["description"],
        state,
        **maps,
        ui=texts["ui"],
        plan=_plan(given.get("plan")),
        ranges=ranges,
    )


def parse_figures(given: object) -> dict[str, float]:
    """The figures of a run (rates, lag, durations) by name."""
    found = given.get("figures", {}) if isinstance(given, dict) else {}
    if not isinstance(found, dict) or len(found) > MAX_ENTRIES:
        raise ServiceRefused(f"figures must be an object of at most {MAX_ENTRIES} numbers")
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or len(name) > MAX_TEXT:
            raise ServiceRefused(f"the figure {shown(name)} must be a number")
    return found


def _is_text(value: object) -> TypeGuard[str]:
    """Whether it is a text that a file can keep: JSON can have halves of characters, which UTF-8 has not."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return False
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not _is_text(value):
        raise ServiceRefused(f"{name} must be a text of at most {MAX_TEXT} characters")
    return value


def _texts(given: Mapping[str, Any], name: str) -> dict[str, str]:
    found = given.get(name, {})
    if not isinstance(found, dict) or len(found) > MAX_ENTRIES:
        raise ServiceRefused(f"{name} must be an object of at most {MAX_ENTRIES} texts")
    for key, value in found.items():
        if not _is_text(value) or not _is_text(key):
            raise ServiceRefused(f"{name}: {shown(key)} must be a text of at most {MAX_TEXT} characters")
    return found


def _plan(given: object) -> tuple[PlanEntry, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or len(given) > MAX_ENTRIES:
        raise ServiceRefused(f"plan must be a list of at most {MAX_ENTRIES} operators")
    return tuple([_plan_entry(position, each) for position, each in enumerate(given)])


def _plan_entry(position: int, given: object) -> PlanEntry:
    where = f"plan, entry {position}"
    if not isinstance(given, dict) or set(given) - {"op", "inputs", "text"}:
        raise ServiceRefused(f"{where} must be an object with op, inputs and text only")
    try:
        op, text = _text(given, "op"), _text(given, "text")
    except ServiceRefused as error:
        raise ServiceRefused(f"{where}: {error}") from None
    if not op:
        raise ServiceRefused(f"{where}: op is missing or empty; name the operator")
    inputs = given.get("inputs", [])
    if not isinstance(inputs, list) or len(inputs) > MAX_ENTRIES:
        raise ServiceRefused(f"{where}: inputs must be a list of at most {MAX_ENTRIES} inputs")
    for each in inputs:
        is_earlier = isinstance(each, int) and not isinstance(each, bool) and 0 <= each < position
        if not _is_text(each) and not is_earlier:
            raise ServiceRefused(
                f"{where}: the input {shown(str(each))} must be a name of at most {MAX_TEXT} characters, or"
                " the position of an earlier entry, from 0"
            )
    return PlanEntry(op, tuple(inputs), text)


def iso_time(time: float) -> str:
    """A time in seconds since the epoch as ISO 8601 text in UTC."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")

"""What a node reports about itself with each heartbeat: its figures, and the traffic of its links. Pure.

A heartbeat may also come without a report, as earlier versions send it. A report has at most MAX_FIGURES
figures and MAX_LINKS links. A node with more links reports those with unconfirmed bytes first, then the
busiest. The admin node ignores figures that it does not know, and rejects anything that is not a report.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, cast, get_args

from hpwsn.routing.links.link_traffic import By, LinkReport, State
from hpwsn.routing.topology.topology import MalformedTopology, check_name

MAX_FIGURES = 64
"""Figures of a report; a node has fewer than 20."""
MAX_LINKS = 100
"""Links of a report."""
MAX_BYTES = 64 * 1024
"""Bytes of a report; one with MAX_LINKS links to nodes with the longest names is shorter."""

LARGEST = 1e18
"""The largest number in a report."""

Figures = Mapping[str, float | None]


class MalformedReport(ValueError):
    """The body of a heartbeat is not a report; the text says why."""


@dataclass(frozen=True, slots=True)
class NodeReport:
    """Figures by name, None where nothing was measured, and the links on which the node sends."""

    figures: Figures = field(default_factory=dict)
    links: tuple[LinkReport, ...] = ()

    def encode(self) -> dict[str, Any]:
        """Return the body of a heartbeat."""
        figures = {name: _sane(value) for name, value in islice(self.figures.items(), MAX_FIGURES)}
        return {"figures": figures, "links": [asdict(link) for link in most_telling(self.links)]}


def _sane(value: float | None) -> float | None:
    """A value that the admin node accepts; a node must not leave its cluster over one odd figure."""
    return value if value is not None and abs(value) <= LARGEST else None


def most_telling(links: Iterable[LinkReport]) -> list[LinkReport]:
    """Return at most MAX_LINKS links: those with unconfirmed bytes first, then the busiest."""
    return sorted(links, key=lambda link: (-link.unconfirmed, -link.bytes, link.to, link.by))[:MAX_LINKS]


def parse_report(body: bytes, known: Iterable[str]) -> NodeReport | None:
    """Read the body of a heartbeat, with the known figures only; None for an empty body."""
    if not body:
        return None
    if len(body) > MAX_BYTES:
        raise MalformedReport(f"the report has {len(body)} bytes; send at most {MAX_BYTES}")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedReport(f"the report is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise MalformedReport("the report must be a JSON object with figures and links")
    figures, links = document.get("figures", {}), document.get("links", [])
    return NodeReport(_figures(figures, frozenset(known)), _links(links))


def _figures(given: object, known: frozenset[str]) -> Figures:
    if not isinstance(given, dict) or len(given) > MAX_FIGURES:
        raise MalformedReport(f"'figures' must be a JSON object with at most {MAX_FIGURES} numbers")
    for name, value in given.items():
        if value is not None:
            _number(given, name)
    return {name: value for name, value in given.items() if name in known}


def _links(given: object) -> tuple[LinkReport, ...]:
    if not isinstance(given, list) or len(given) > MAX_LINKS:
        raise MalformedReport(f"'links' must be a list of at most {MAX_LINKS} links")
    return tuple(map(_link, given))


def _link(given: object) -> LinkReport:
    if not isinstance(given, dict):
        raise MalformedReport(f"a link must be a JSON object, not {str(given)[:80]!r}")
    try:
        to = check_name(str(given.get("to", "")))
    except MalformedTopology as error:
        raise MalformedReport(f"'to' of a link: {error}") from error
    return LinkReport(
        to,
        cast(By, _choice(given, "by", get_args(By))),
        cast(State, _choice(given, "state", get_args(State))),
        _amount(given, "rate"),
        _amount(given, "bytes"),
        int(_amount(given, "unconfirmed")),
    )


def _choice(given: dict[str, Any], key: str, choices: tuple[str, ...]) -> str:
    value = given.get(key)
    if value not in choices:
        raise MalformedReport(f"{key!r} of a link is {str(value)[:80]!r}; give {' or '.join(choices)}")
    return str(value)


def _amount(given: dict[str, Any], key: str) -> float:
    value = _number(given, key)
    if value < 0:
        raise MalformedReport(f"{key!r} is {value}; give a number of 0 or more")
    return value


def _number(given: dict[str, Any], key: str) -> float:
    value: Any = given.get(key)
    if type(value) not in (int, float) or not abs(value) <= LARGEST:
        raise MalformedReport(f"{key[:80]!r} is {str(value)[:80]!r}; give a number up to {LARGEST:g}")
    return float(value)

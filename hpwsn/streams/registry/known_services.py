"""The stream services registered at a node, and the check of subscriptions against their constraints.

A job registers its service and repeats the registration as its heartbeat, with new figures. A service without
heartbeats is listed as silent. It stays registered until it has been silent for `forget_after`, or until an
operator removes it; its constraints still apply, because its events are still in the log. A second run of a
running service is rejected, because both runs would publish the same events. Spec of stream data services:
constraint, request. Pure: the clock is an argument, and the caller saves changes to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hpwsn.matching.content.content_filters import compile_predicates
from hpwsn.matching.content.xpath_shape import shape_of
from hpwsn.matching.language.constraints import check_constraints
from hpwsn.matching.language.predicates import Disjunction
from hpwsn.streams.registry.service import (
    Service,
    ServiceRefused,
    iso_time,
    parse_figures,
    parse_service,
)
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.soap.faults import InvalidFilterFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression


class AlreadyRunning(ServiceRefused):
    """Another run of the same service is running."""


class RegistryFull(ServiceRefused):
    """The node has as many services as it may."""


@dataclass(slots=True)
class _RegisteredService:
    service: Service
    since: float
    seen: float
    figures: dict[str, float] = field(default_factory=dict)


class Services:
    """The registered services by uri."""

    def __init__(
        self, clock: Callable[[], float], *, limit: int, silent_after: float, forget_after: float
    ) -> None:
        self._clock = clock
        self._limit = limit
        self._silent_after = silent_after
        self._forget_after = forget_after
        self._known: dict[str, _RegisteredService] = {}

    def restore(self, saved: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Restore the services saved before a restart; each is silent until its job's next heartbeat."""
        seen = self._clock() - self._silent_after
        for uri, document in saved:
            # If this version rejects a service that an older one accepted, its job learns so at its next
            # heartbeat.
            with suppress(ServiceRefused):
                self._known[uri] = _RegisteredService(parse_service(uri, document), seen, seen)

    def saved(self) -> list[tuple[str, dict[str, Any]]]:
        """The services in the form that `restore` reads."""
        return [(uri, known.service.document()) for uri, known in self._known.items()]

    def register(self, uri: str, document: object) -> bool:
        """Register a service, or process its heartbeat; True if the services must be saved again."""
        service, figures, now = parse_service(uri, document), parse_figures(document), self._clock()
        self._remove_expired(now)
        known = self._known.get(uri)
        if known is None and len(self._known) >= self._limit:
            raise RegistryFull(
                f"this node has its limit of {self._limit} services; remove some, or raise streams.limit"
            )
        if known is not None and self._is_other(known, service, now):
            raise AlreadyRunning(
                f"{uri} is already running from another checkpoint ({known.service.instance}); stop that"
                f" run first, or wait {self._silent_after:g} s if it has crashed (streams.silent_after)"
            )
        same_run = known is not None and known.service.instance == service.instance
        since = known.since if known is not None and same_run else now
        self._known[uri] = _RegisteredService(service, since, now, figures)
        return known is None or known.service != service

    def _is_other(self, known: _RegisteredService, service: Service, now: float) -> bool:
        return known.service.instance != service.instance and self._state(known, now) == "running"

    def remove(self, uri: str) -> bool:
        """Remove a service; False if it is not registered."""
        return self._known.pop(uri, None) is not None

    def describe(self, uri: str) -> dict[str, Any] | None:
        """The description of one service in the list; None if it is not registered."""
        self._remove_expired(self._clock())
        known = self._known.get(uri)
        return None if known is None else self._describe(known)

    def plan(self, uri: str) -> list[dict[str, Any]] | None:
        """The operators that the job of a service has registered; None if it has not."""
        known = self._known.get(uri)
        return None if known is None else known.service.document().get("plan")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._remove_expired(self._clock())
        return iter([self._describe(known) for _, known in sorted(self._known.items())])

    def uris(self) -> list[str]:
        """The uris of the registered services."""
        self._remove_expired(self._clock())
        return list(self._known)

    def heard(self, uri: str) -> float | None:
        """When the last heartbeat of a service as running came; None if it is not running."""
        known = self._known.get(uri)
        return known.seen if known is not None and known.service.state == "running" else None

    def __len__(self) -> int:
        return len(self._known)

    def _describe(self, known: _RegisteredService) -> dict[str, Any]:
        document = known.service.document()
        # A list of services is short; `plan` gives it for one.
        document.pop("plan", None)
        return {
            "uri": known.service.uri,
            **document,
            "state": self._state(known, self._clock()),
            "since": iso_time(known.since),
            "seen": iso_time(known.seen),
            "figures": dict(known.figures),
        }

    def _state(self, known: _RegisteredService, now: float) -> str:
        if known.service.state == "running" and now >= known.seen + self._silent_after:
            return "silent"
        return known.service.state

    def _remove_expired(self, now: float) -> None:
        if self._forget_after:
            gone = [uri for uri, known in self._known.items() if now >= known.seen + self._forget_after]
            for uri in gone:
                del self._known[uri]

    def check(self, wanted: Filter) -> None:
        """Raise InvalidFilterFault if no event of the services on the wanted topics can match the filter."""
        if not self._known or not wanted.content:
            return
        for expression in wanted.topics:
            self._check(expression, wanted.content)

    def _check(self, expression: TopicExpression, content: tuple[ContentFilter, ...]) -> None:
        refusals: list[InvalidFilterFault] = []
        for pattern in expression.patterns:
            found = [_refusal(service, content) for service in self._services_on(pattern.topic)]
            if not found or None in found:
                # No service publishes on this alternative, or one publishes matching events.
                return
            refusals += filter(None, found)
        raise refusals[0]

    def _services_on(self, topic: Topic | None) -> list[Service]:
        """The services whose events a subscriber to exactly this topic receives."""
        if topic is None:
            return []
        return [k.service for k in self._known.values() if k.service.topic.covers(topic)]


def _refusal(service: Service, content: tuple[ContentFilter, ...]) -> InvalidFilterFault | None:
    try:
        for request in _requests(content):
            check_constraints(service.ranges, request)
    except InvalidFilterFault as fault:
        return fault
    return None


def _requests(content: tuple[ContentFilter, ...]) -> Iterator[Disjunction]:
    """The conditions of the filters on attributes; of XPath filters, only predicates on numbers."""
    predicates = compile_predicates(tuple(f for f in content if f.dialect == DIALECT_PREDICATES))
    if predicates is not None:
        yield predicates
    for each in content:
        shape = shape_of(each) if each.dialect == DIALECT_XPATH else None
        if shape is not None:
            # XPath can also compare the text of a number, which constraints do not cover.
            names = {path.as_number: _last_name(path.text) for path in shape.paths}
            yield tuple(
                tuple(replace(p, attribute=names.get(p.attribute, p.attribute)) for p in conjunction)
                for conjunction in shape.request
            )


def _last_name(path: str) -> str:
    return path.rpartition("/")[2].lstrip("@").rpartition(":")[2]

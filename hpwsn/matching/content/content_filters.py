"""Content filters of subscriptions: equal filters are compiled once, and evaluated once per payload.

The module shares compiled filters and accepts both dialects. Their languages are in
`hpwsn_client.wsn.operations.filters` (XPath 1.0) and `hpwsn.matching.language.predicate_parser`
(predicates). Several predicate filters of a subscription are joined with `and` into one normal form, so
contradictory ones are refused. A payload is parsed when the first XPath needs it, and becomes an event when
the first predicate needs it. A flat event needs no parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from lxml import etree

from hpwsn.matching.content.attributes import event_of, flat_event
from hpwsn.matching.content.xpath_shape import Path, SeveralNodes, XPathShape, path_reader, shape_of
from hpwsn.matching.language.normal_form import And, TooLarge, normalise
from hpwsn.matching.language.predicate_parser import PredicateError, parse_expression, parse_predicates
from hpwsn.matching.language.predicates import Disjunction, Event, disjunction_holds
from hpwsn.matching.language.values import Scalar
from hpwsn_client.wsn.operations.filters import ContentFilter, compile_content
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml
from hpwsn_client.wsn.topics.topic import shown

Filters = tuple[ContentFilter, ...]
Values = dict[str, Scalar] | None
Condition = Callable[[bytes], bool]
"""Whether a filter accepts a stored payload."""


class XPath:
    """A compiled XPath filter, shared by all equal ones."""

    __slots__ = ("holds", "shape", "source", "users")

    def __init__(self, source: ContentFilter) -> None:
        self.source = source
        self.holds = compile_content(source)
        self.shape = shape_of(source)
        self.users = 0


class CompiledFilter:
    """The compiled filters of a subscription: predicates as one request, XPath expressions, or both."""

    __slots__ = ("request", "users", "xpaths")

    def __init__(self, request: Disjunction | None, xpaths: tuple[XPath, ...]) -> None:
        self.request = request
        self.xpaths = xpaths
        self.users = 0

    @property
    def shape(self) -> XPathShape | None:
        """The filter as a request on paths; None unless it is a single XPath that an engine can hold."""
        return self.xpaths[0].shape if self.request is None and len(self.xpaths) == 1 else None


class ContentFilters:
    """The filters in use; equal ones are shared."""

    __slots__ = ("_compiled", "_xpaths")

    def __init__(self) -> None:
        self._compiled: dict[Filters, CompiledFilter] = {}
        self._xpaths: dict[ContentFilter, XPath] = {}

    def acquire(self, filters: Filters) -> None:
        """Compile new filters and count one more user; raises the fault for an invalid expression."""
        if not filters:
            return
        compiled = self._compiled.get(filters)
        if compiled is None:
            compiled = self._compiled[filters] = self._compile(filters)
            for xpath in compiled.xpaths:
                self._xpaths[xpath.source] = xpath
                xpath.users += 1
        compiled.users += 1

    def _compile(self, filters: Filters) -> CompiledFilter:
        if len(filters) == 1 and filters[0].dialect == DIALECT_PREDICATES:
            return CompiledFilter(compile_predicates(filters), ())
        _check_dialects(filters)
        xpaths = dict.fromkeys(f for f in filters if f.dialect == DIALECT_XPATH)
        compiled = tuple(self._xpaths.get(f) or XPath(f) for f in xpaths)
        return CompiledFilter(compile_predicates(filters), compiled)

    def find(self, filters: Filters) -> CompiledFilter | None:
        """Return the compiled form of acquired filters; None once they are released."""
        return self._compiled.get(filters)

    def release(self, filters: Filters) -> None:
        """Count one user less; the last release drops the compiled filters."""
        if not filters:
            return
        compiled = self._compiled[filters]
        compiled.users -= 1
        if compiled.users:
            return
        del self._compiled[filters]
        for xpath in compiled.xpaths:
            xpath.users -= 1
            if not xpath.users:
                del self._xpaths[xpath.source]

    def evaluation(self, payload: bytes) -> Evaluation:
        """Return the evaluation of one payload, which computes results on demand."""
        return Evaluation(self, payload)

    def __len__(self) -> int:
        return len(self._compiled)


class Evaluation:
    """The results of filters for one payload."""

    __slots__ = ("_answers", "_element", "_event", "_filters", "_paths", "_payload")

    def __init__(self, filters: ContentFilters, payload: bytes) -> None:
        self._filters = filters
        self._payload = payload
        self._element: etree._Element | None = None
        self._event: Event | None = None
        self._answers: dict[XPath, bool] = {}
        self._paths: dict[str, Values] = {}

    @property
    def element(self) -> etree._Element:
        """The payload, parsed once."""
        if self._element is None:
            self._element = parse_xml(self._payload, STORED_LIMITS)
        return self._element

    @property
    def event(self) -> Event:
        """The payload as an event, built once."""
        if self._event is None:
            self._event = self._flat() or event_of(self.element)
        return self._event

    def _flat(self) -> Event | None:
        return flat_event(self._payload) if self._element is None else None

    def holds(self, filters: Filters) -> bool:
        """Whether all the filters accept the payload; filters that are not in use accept none."""
        if not filters:
            return True
        compiled = self._filters.find(filters)
        return compiled is not None and self.accepts(compiled)

    def accepts(self, compiled: CompiledFilter) -> bool:
        """Whether the compiled filter accepts the payload."""
        if compiled.request is not None and not disjunction_holds(compiled.request, self.event):
            return False
        return self.conditions_hold(compiled.xpaths)

    def values(self, path: Path) -> Values:
        """Return a path's values as attributes of an event, read once; None if it has several nodes."""
        if path.key not in self._paths:
            self._paths[path.key] = _read(path, self.element)
        return self._paths[path.key]

    def conditions_hold(self, xpaths: Iterable[XPath]) -> bool:
        """Whether all the XPath filters hold; each is evaluated once."""
        return all(self._answer(xpath) for xpath in xpaths)

    def _answer(self, xpath: XPath) -> bool:
        answer = self._answers.get(xpath)
        if answer is None:
            answer = self._answers[xpath] = xpath.holds(self.element)
        return answer


def _read(path: Path, payload: etree._Element) -> Values:
    try:
        found = path_reader(path.text, path.namespaces).read(payload)
    except SeveralNodes:
        return None
    if found is None:
        return {}
    text, number = found
    return {path.as_text: text} if number != number else {path.as_text: text, path.as_number: number}


def compile_condition(content: ContentFilter) -> Condition:
    """Compile one filter of either dialect; a payload that cannot be parsed is not accepted."""
    _check_dialects((content,))
    request = compile_predicates((content,))
    if request is not None:
        return partial(_request_holds, request)
    return partial(_xpath_holds, compile_content(content))


def _request_holds(request: Disjunction, payload: bytes) -> bool:
    event = flat_event(payload)
    if event is None:
        try:
            event = event_of(parse_xml(payload, STORED_LIMITS))
        except SoapFault:
            return False
    return disjunction_holds(request, event)


def _xpath_holds(holds: Callable[[etree._Element], bool], payload: bytes) -> bool:
    try:
        return holds(parse_xml(payload, STORED_LIMITS))
    except SoapFault:
        return False


def compile_predicates(filters: Filters) -> Disjunction | None:
    """Return the predicate filters as one request; None if there are none."""
    texts = tuple([f.expression for f in filters if f.dialect == DIALECT_PREDICATES])
    if not texts:
        return None
    requests = [_parse(text) for text in texts]
    return requests[0] if len(texts) == 1 else _joined(texts)


def _parse(text: str) -> Disjunction:
    try:
        return parse_predicates(text)
    except PredicateError as error:
        raise InvalidMessageContentExpressionFault(
            f"{shown(text)} is not a valid predicate filter: {error}"
        ) from error


def _joined(texts: tuple[str, ...]) -> Disjunction:
    try:
        request = normalise(And(tuple(map(parse_expression, texts))))
    except TooLarge as error:
        raise InvalidMessageContentExpressionFault(f"the filters are too large together: {error}") from None
    if not request:
        raise InvalidMessageContentExpressionFault(
            f"{' and '.join(map(shown, texts))} can never match together: they contradict each other;"
            " remove one of them"
        )
    return request


def _check_dialects(filters: Filters) -> None:
    for f in filters:
        if f.dialect not in (DIALECT_XPATH, DIALECT_PREDICATES):
            raise InvalidMessageContentExpressionFault(
                f"the dialect {shown(f.dialect)} is unknown; use {DIALECT_XPATH} or {DIALECT_PREDICATES}"
            )

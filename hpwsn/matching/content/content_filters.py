"""Content filters in the broker: what the filters of a subscription ask for, compiled once for all that ask
for the same, and their answers for one payload.

Owns the sharing and the two dialects' way in; the languages are hpwsn_client.wsn.operations.filters' (XPath
1.0) and hpwsn.matching.language.grammar's (predicates). Several predicate filters are joined by `and` into
one normal form, so those that exclude each other are refused. A payload is parsed at the first XPath that
looks at it, made an event at the first predicate, by the parser only if it is no flat one, and neither
without a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from lxml import etree

from hpwsn.matching.content.attributes import event_of, flat_event
from hpwsn.matching.content.xpath_shape import Path, SeveralNodes, Shape, path_reader, shape_of
from hpwsn.matching.language.normal_form import And, TooLarge, normalise
from hpwsn.matching.language.predicates import Disjunction, Event, disjunction_holds
from hpwsn.matching.language.values import Scalar
from hpwsn_client.wsn.operations.filters import ContentFilter, compile_content
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml
from hpwsn_client.wsn.topics.topic import shown

Filters = tuple[ContentFilter, ...]
Values = dict[str, Scalar] | None
Condition = Callable[[etree._Element], bool]


class XPath:
    """A condition in XPath, one for all filters that are equal."""

    __slots__ = ("holds", "shape", "source", "users")

    def __init__(self, source: ContentFilter) -> None:
        self.source = source
        self.holds = compile_content(source)
        self.shape = shape_of(source)
        self.users = 0


class Wanted:
    """What the filters of a subscription ask for together: a request, conditions in XPath, or both."""

    __slots__ = ("request", "users", "xpaths")

    def __init__(self, request: Disjunction | None, xpaths: tuple[XPath, ...]) -> None:
        self.request = request
        self.xpaths = xpaths
        self.users = 0

    @property
    def shape(self) -> Shape | None:
        """What it is as a request on paths, if it is nothing but one condition that has that shape."""
        return self.xpaths[0].shape if self.request is None and len(self.xpaths) == 1 else None


class ContentFilters:
    """The filters in use, shared between equal ones."""

    __slots__ = ("_wanted", "_xpaths")

    def __init__(self) -> None:
        self._wanted: dict[Filters, Wanted] = {}
        self._xpaths: dict[ContentFilter, XPath] = {}

    def acquire(self, filters: Filters) -> None:
        """Compile what is new; raises the fault for an expression that cannot be."""
        if not filters:
            return
        wanted = self._wanted.get(filters)
        if wanted is None:
            wanted = self._wanted[filters] = self._compile(filters)
            for xpath in wanted.xpaths:
                self._xpaths[xpath.source] = xpath
                xpath.users += 1
        wanted.users += 1

    def _compile(self, filters: Filters) -> Wanted:
        if len(filters) == 1 and filters[0].dialect == DIALECT_PREDICATES:
            return Wanted(compile_predicates(filters), ())
        _check_dialects(filters)
        xpaths = dict.fromkeys(f for f in filters if f.dialect == DIALECT_XPATH)
        compiled = tuple(self._xpaths.get(f) or XPath(f) for f in xpaths)
        return Wanted(compile_predicates(filters), compiled)

    def find(self, filters: Filters) -> Wanted | None:
        """What was acquired for these filters, as long as it is not released."""
        return self._wanted.get(filters)

    def release(self, filters: Filters) -> None:
        """Forget what nobody uses any more."""
        if not filters:
            return
        wanted = self._wanted[filters]
        wanted.users -= 1
        if wanted.users:
            return
        del self._wanted[filters]
        for xpath in wanted.xpaths:
            xpath.users -= 1
            if not xpath.users:
                del self._xpaths[xpath.source]

    def evaluation(self, payload: bytes) -> Evaluation:
        """The filters' answers for one payload, worked out as they are asked for."""
        return Evaluation(self, payload)

    def __len__(self) -> int:
        return len(self._wanted)


class Evaluation:
    """Answers for one payload."""

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
        """The payload as an event, made once."""
        if self._event is None:
            self._event = self._flat() or event_of(self.element)
        return self._event

    def _flat(self) -> Event | None:
        return flat_event(self._payload) if self._element is None else None

    def holds(self, filters: Filters) -> bool:
        """Whether every one of the filters accepts the payload; those that nobody holds accept none."""
        if not filters:
            return True
        wanted = self._filters.find(filters)
        return wanted is not None and self.accepts(wanted)

    def accepts(self, wanted: Wanted) -> bool:
        """Whether the payload is as it is wanted."""
        if wanted.request is not None and not disjunction_holds(wanted.request, self.event):
            return False
        return self.conditions_hold(wanted.xpaths)

    def values(self, path: Path) -> Values:
        """A path's attributes as an event has them, read once; None where it has several nodes."""
        if path.key not in self._paths:
            self._paths[path.key] = _read(path, self.element)
        return self._paths[path.key]

    def conditions_hold(self, xpaths: Iterable[XPath]) -> bool:
        """Whether all of the conditions hold, each looked at once however many ask."""
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
    """One filter, of either dialect, as a function of a payload."""
    _check_dialects((content,))
    request = compile_predicates((content,))
    if request is None:
        return compile_content(content)
    return lambda payload: disjunction_holds(request, event_of(payload))


def compile_predicates(filters: Filters) -> Disjunction | None:
    """The predicates among the filters as one request; None where there are none."""
    texts = tuple([f.expression for f in filters if f.dialect == DIALECT_PREDICATES])
    if not texts:
        return None
    parse = _parser()
    requests = [parse(text) for text in texts]
    return requests[0] if len(texts) == 1 else _joined(texts)


@cache
def _parser() -> Callable[[str], Disjunction]:
    """What reads predicates; for those who use it: a node without predicates starts without it."""
    from hpwsn.matching.language.grammar import PredicateError, parse_predicates

    def parse(text: str) -> Disjunction:
        try:
            return parse_predicates(text)
        except PredicateError as error:
            raise InvalidMessageContentExpressionFault(
                f"{shown(text)} is no predicate to filter with: {error}"
            ) from error

    return parse


def _joined(texts: tuple[str, ...]) -> Disjunction:
    from hpwsn.matching.language.grammar import parse_expression

    try:
        request = normalise(And(tuple(map(parse_expression, texts))))
    except TooLarge as error:
        raise InvalidMessageContentExpressionFault(f"together they are too large: {error}") from None
    if not request:
        raise InvalidMessageContentExpressionFault(
            f"{' and '.join(map(shown, texts))} can never hold together; what one asks for, another excludes"
        )
    return request


def _check_dialects(filters: Filters) -> None:
    for f in filters:
        if f.dialect not in (DIALECT_XPATH, DIALECT_PREDICATES):
            raise InvalidMessageContentExpressionFault(
                f"the dialect {shown(f.dialect)} is unknown; use {DIALECT_XPATH} or {DIALECT_PREDICATES}"
            )

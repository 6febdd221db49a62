"""Content filters in the broker: each distinct expression is compiled once and evaluated once per
notification.

Owns the sharing, not the languages (hpwsn_client.wsn.filters compiles). A payload is parsed at the first
filter that looks at it, and never for subscribers without one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lxml import etree

from hpwsn_client.wsn.filters import ContentFilter, compile_content
from hpwsn_client.wsn.xml import STORED_LIMITS, parse_xml

Predicate = Callable[[etree._Element], bool]


@dataclass(slots=True)
class _Shared:
    predicate: Predicate
    users: int = 0


class ContentFilters:
    """The compiled filters in use, shared between equal ones."""

    __slots__ = ("_shared",)

    def __init__(self) -> None:
        self._shared: dict[ContentFilter, _Shared] = {}

    def acquire(self, filters: tuple[ContentFilter, ...]) -> None:
        """Compile what is new; raises the fault for an expression that cannot be."""
        compiled = {f: self._shared.get(f) or _Shared(compile_content(f)) for f in filters}
        self._shared.update(compiled)
        for f in filters:
            compiled[f].users += 1

    def release(self, filters: tuple[ContentFilter, ...]) -> None:
        """Forget what nobody uses any more."""
        for f in filters:
            shared = self._shared[f]
            shared.users -= 1
            if not shared.users:
                del self._shared[f]

    def evaluation(self, payload: bytes) -> "Evaluation":
        """The filters' answers for one payload, worked out as they are asked for."""
        return Evaluation(self._shared, payload)

    def __len__(self) -> int:
        return len(self._shared)


class Evaluation:
    """Answers for one payload."""

    __slots__ = ("_answers", "_element", "_payload", "_shared")

    def __init__(self, shared: dict[ContentFilter, _Shared], payload: bytes) -> None:
        self._shared = shared
        self._payload = payload
        self._element: etree._Element | None = None
        self._answers: dict[ContentFilter, bool] = {}

    def holds(self, filters: tuple[ContentFilter, ...]) -> bool:
        """Whether every one of the filters accepts the payload."""
        return all(self._answer(f) for f in filters)

    def _answer(self, f: ContentFilter) -> bool:
        answer = self._answers.get(f)
        if answer is None:
            if self._element is None:
                self._element = parse_xml(self._payload, STORED_LIMITS)
            answer = self._answers[f] = self._shared[f].predicate(self._element)
        return answer

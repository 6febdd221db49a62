"""Checks of content filters, at /filters/check: whether a filter is valid, and where it is not.

A page checks a filter while somebody types it, before it reads events or subscribes. With a topic, the
constraints of the stream services on it count too, as they do for readers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from hpwsn.door.rest.events.event_parameters import DIALECTS, content_filter
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.json_requests import read_object
from hpwsn.matching.content.content_filters import compile_condition
from hpwsn.matching.content.xpath_shape import shape_of
from hpwsn_client.wsn.operations.filters import ContentFilter, Filter
from hpwsn_client.wsn.soap.faults import InvalidFilterFault, InvalidMessageContentExpressionFault
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_SIMPLE
from hpwsn_client.wsn.topics.topic_expressions import Topic, TopicExpression

_NAMES = {uri: name for name, uri in DIALECTS.items()}


class FilterCheckDoor:
    """The request handler for /filters/check; `check` raises InvalidFilterFault for what matches no event."""

    def __init__(self, check: Callable[[Filter], None], request_timeout: float) -> None:
        self._check_filter = check
        self._request_timeout = request_timeout

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.post("/filters/check", self._check)]

    @answers_in_json
    async def _check(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        asked = await read_object(request, self._request_timeout, "filter", "dialect", "topic")
        text, dialect, on = _text(asked, "filter"), _text(asked, "dialect"), _text(asked, "topic")
        if text is None:
            raise bad('the field "filter" is missing; give the filter as a text')
        topic = None if on is None else Topic.parse(on)
        content = content_filter(text, dialect)
        if content is None:
            return _wrong("the filter is empty; write a condition such as speed > 60", 1)
        try:
            compile_condition(content)
            if topic is not None:
                self._check_filter(Filter((TopicExpression.of(topic, DIALECT_SIMPLE),), (content,)))
        except InvalidMessageContentExpressionFault as fault:
            column = getattr(fault.__cause__, "column", None)
            # The filter is read without the blanks around it.
            blanks = len(text) - len(text.lstrip())
            return _wrong(fault.reason, None if column is None else column + blanks)
        except InvalidFilterFault as fault:
            return _wrong(fault.reason, None)
        return answer({"ok": True, "dialect": _NAMES[content.dialect], "indexed": _is_indexed(content)}, 200)


def _wrong(error: str, column: int | None) -> web.Response:
    return answer({"error": error, "column": column}, 400)


def _is_indexed(content: ContentFilter) -> bool:
    """Whether the engines can index the filter, so that it costs little beside many others."""
    return content.dialect == DIALECT_PREDICATES or shape_of(content) is not None


def _text(asked: dict[str, Any], name: str) -> str | None:
    """A field; None if it is null or missing."""
    value = asked.get(name)
    if value is not None and not isinstance(value, str):
        raise bad(f'the field "{name}" is not a text; give a text, or leave it out')
    return value

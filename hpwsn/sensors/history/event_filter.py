"""Content filters over rows of the history: the language of filters of events, with the same meaning.

A predicate reads the fields of the event as they are, which gives what it would find in the stored payload.
An XPath needs the payload itself, which is made from the event again, and takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hpwsn.matching.content.content_filters import compile_condition, compile_predicates
from hpwsn.matching.language.predicates import Event, disjunction_holds
from hpwsn.matching.language.values import Scalar
from hpwsn.sensors.history.history_query import Item
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import event_of
from hpwsn_client.wsn.formats.json_events import encode_event
from hpwsn_client.wsn.operations.filters import ContentFilter


def compile_event_filter(content: ContentFilter) -> Callable[[Item], bool]:
    """Whether a filter accepts a row; raises the fault for a filter that is not valid."""
    condition, request = compile_condition(content), compile_predicates((content,))
    if request is not None:
        return lambda item: disjunction_holds(request, attributes_of(_document(item)))
    return lambda item: condition(encode_event(dict(_document(item))))


def attributes_of(document: Mapping[str, Any]) -> Event:
    """The attributes that a predicate finds in the event of a flat document.

    A field that is null or an empty list does not exist.
    """
    found: dict[str, Scalar | tuple[Scalar, ...]] = {}
    for name, value in document.items():
        if isinstance(value, list | tuple):
            if value:
                items = [_scalar(each) for each in value]
                found[name] = items[0] if len(items) == 1 else tuple(items)
        elif value is not None:
            found[name] = _scalar(value)
    return found


def _document(item: Item) -> Mapping[str, Any]:
    return event_of(item) if isinstance(item, Reading) else item


def _scalar(value: Any) -> Scalar:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else value

"""Removed filters are freed at once: none waits for the cyclic garbage collector, which stops large nodes."""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from hpwsn.matching.content.content_filters import ContentFilters
from hpwsn.matching.engine.default_engine import DefaultEngine
from hpwsn.matching.language.predicate_parser import parse_predicates
from hpwsn_client.wsn.operations.filters import ContentFilter
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH

LIVE, REPLACED = 300, 900
WORDS = ("fire", "smoke", "flood", "storm", "quake")


def _place(chance: random.Random) -> str:
    west, south = chance.uniform(-180, 170), chance.uniform(-90, 80)
    return f"within(longitude, latitude, {west:.2f}, {south:.2f}, {west + 9:.2f}, {south + 9:.2f})"


KINDS: dict[str, Callable[[random.Random, int], str]] = {
    "ranges": lambda chance, n: f"a >= {chance.random():.3f} and b < {chance.random():.3f}",
    "equality": lambda chance, n: f"site = {n % 50}",
    "pairs": lambda chance, n: f"site = {n % 50} and room = {n % 7} and floor = {n % 5}",
    "lists": lambda chance, n: f"site in ({n % 50}, {n % 49}) and a > {chance.random():.3f}",
    "texts": lambda chance, n: f"kind = 'k{n % 9}' and state != 's{n % 4}'",
    "words": lambda chance, n: f"has(keywords, '{chance.choice(WORDS)}', 'w{n}')",
    "words at places": lambda chance, n: f"has(keywords, '{chance.choice(WORDS)}') and {_place(chance)}",
    "places": lambda chance, n: _place(chance),
    "rare attributes": lambda chance, n: f"a{n} > 5",
    "negations": lambda chance, n: f"not (a > {chance.random():.3f} and b > {chance.random():.3f})",
    "alternatives": lambda chance, n: f"a > {chance.random():.3f} or site = {n % 50} or exists(c)",
}


@contextmanager
def without_garbage() -> Iterator[None]:
    """Fail if objects of ours that the block dropped are still there because they refer to each other."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        left = Counter(type(each).__qualname__ for each in gc.garbage if "hpwsn" in type(each).__module__)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left


@pytest.mark.parametrize("kind", KINDS)
def test_removed_requests_of_the_default_engine_leave_no_cycles(kind: str) -> None:
    make, chance, engine = KINDS[kind], random.Random(5), DefaultEngine()
    for number in range(LIVE):
        engine.add(number, parse_predicates(make(chance, number)))
    event = {"a": 0.5, "b": 0.5, "site": 3.0, "keywords": ("fire",), "longitude": 1.0, "latitude": 2.0}
    with without_garbage():
        for number in range(LIVE, LIVE + REPLACED):
            engine.remove(number - LIVE)
            engine.add(number, parse_predicates(make(chance, number)))
            if number % 100 == 0:
                engine.match(event)
    assert len(engine) == LIVE


@pytest.mark.parametrize("dialect", [DIALECT_PREDICATES, DIALECT_XPATH])
def test_released_content_filters_leave_no_cycles(dialect: str) -> None:
    filters = ContentFilters()

    def wanted(number: int) -> tuple[ContentFilter, ...]:
        text = f"a > {number}" if dialect == DIALECT_PREDICATES else f"/m/a > {number} and /m/b = '{number}'"
        return (ContentFilter(dialect, text),)

    with without_garbage():
        for number in range(LIVE):
            filters.acquire(wanted(number))
            filters.evaluation(b"<m><a>5</a><b>7</b></m>").holds(wanted(number))
            filters.release(wanted(number))
    assert len(filters) == 0

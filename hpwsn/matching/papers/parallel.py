"""The improved tree in parallel: cut into subtrees, and these spread evenly over workers.

Follows section 4.2.3 of the paper on stream data services. The tree is cut at the first level that has at
least as many subtrees as there are workers; each block of subtrees becomes a tree of its own with predicate
lists of its own, so a predicate may be evaluated once in each block. Owns no process: the workers are a port,
of which Here runs one block after another and benchmarks.tools.matching_processes has one with a process
for each block. A change is seen at the next event, when the blocks are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hpwsn.matching.language.predicates import Conjunction, Event
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, Held
from hpwsn.matching.papers.partition import Block, linear_partition
from hpwsn.matching.papers.trees import ImprovedTree, Node, NormalTree

Numbered = tuple[int, Conjunction]
"""A conjunction under the number by which a worker reports it."""


class Workers(Protocol):
    """Those who match, each its own block."""

    def assign(self, blocks: Sequence[Sequence[Numbered]]) -> None:
        """Give each worker its block, instead of what it had."""

    def match(self, events: Sequence[Event]) -> tuple[list[list[int]], int]:
        """The numbers found for each event by all workers together, and their predicate evaluations."""


class BlockMatcher:
    """What a worker does: an improved tree of its block."""

    def __init__(self, block: Sequence[Numbered]) -> None:
        self._tree = ImprovedTree()
        for number, conjunction in block:
            self._tree.add(number, (conjunction,))

    def match(self, events: Sequence[Event]) -> tuple[list[list[int]], int]:
        """The numbers found for each event, and the evaluations."""
        before = self._tree.evaluations
        found = self._tree.match_batch(events)
        return found, self._tree.evaluations - before


class Here:
    """Workers that take turns in the caller's own thread."""

    def __init__(self) -> None:
        self._matchers: list[BlockMatcher] = []

    def assign(self, blocks: Sequence[Sequence[Numbered]]) -> None:
        """Give each worker its block."""
        self._matchers = [BlockMatcher(block) for block in blocks]

    def match(self, events: Sequence[Event]) -> tuple[list[list[int]], int]:
        """The numbers found for each event, and the evaluations."""
        return join_answers([matcher.match(events) for matcher in self._matchers], len(events))


def join_answers(answers: Sequence[tuple[list[list[int]], int]], events: int) -> tuple[list[list[int]], int]:
    """What all workers found together."""
    found: list[list[int]] = [[] for _ in range(events)]
    for numbers, _ in answers:
        for all_, one in zip(found, numbers, strict=True):
            all_.extend(one)
    return found, sum(evaluations for _, evaluations in answers)


class ParallelTree(ConjunctionEngine):
    """An improved tree whose subtrees are matched by workers."""

    def __init__(
        self,
        k: int = 2,
        workers: Workers | None = None,
        partition: Callable[[Sequence[int], int], list[Block]] = linear_partition,
    ) -> None:
        super().__init__()
        self._k = k
        self._workers = workers or Here()
        self._partition = partition
        self._tree = NormalTree()
        self._numbers: dict[int, Held] = {}
        self._next = 0
        self._stale = False

    def _insert(self, held: Held) -> None:
        self._tree.add(self._next, (held.conjunction,))
        self._numbers[self._next] = held
        held.place = self._next
        self._next += 1
        self._stale = True

    def _delete(self, held: Held) -> None:
        self._tree.remove(held.place)
        del self._numbers[held.place]
        self._stale = True

    def blocks(self) -> list[list[Node]]:
        """The subtrees of each block."""
        subtrees = cut_into_subtrees(self._tree.root, self._k)
        bounds = self._partition([subtree.size() for subtree in subtrees], self._k)
        return [subtrees[first:last] for first, last in bounds]

    def _spread(self) -> None:
        blocks = [
            [(leaf.id, leaf.conjunction) for subtree in block for leaf in subtree.all_leaves()]
            for block in self.blocks()
        ]
        always = [(leaf.id, leaf.conjunction) for leaf in self._tree.root.leaves]
        self._workers.assign([[*always, *blocks[0]], *blocks[1:]] if blocks else [always])
        self._stale = False

    def _find(self, event: Event) -> list[Held]:
        return self._find_batch([event])[0]

    def _find_batch(self, events: Sequence[Event]) -> list[list[Held]]:
        if self._stale:
            self._spread()
        if not self._numbers:
            return [[] for _ in events]
        found, evaluations = self._workers.match(events)
        self.evaluations += evaluations
        return [[self._numbers[number] for number in numbers] for numbers in found]

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """The ids for several events, which go to the workers together."""
        found = self._find_batch(events)
        return [self._ids(held, event) for held, event in zip(found, events, strict=True)]


def cut_into_subtrees(root: Node, wanted: int) -> list[Node]:
    """The subtrees of the first level that has so many, or of the last one that has the most.

    A node with leaves of its own is not cut any further, for these would belong to no subtree.
    """
    subtrees = list(root.children.values())
    while len(subtrees) < wanted and any(_can_be_cut(node) for node in subtrees):
        subtrees = [
            part for node in subtrees for part in (node.children.values() if _can_be_cut(node) else (node,))
        ]
    return subtrees


def _can_be_cut(node: Node) -> bool:
    return bool(node.children) and not node.leaves

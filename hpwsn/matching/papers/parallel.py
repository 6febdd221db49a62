"""The improved tree in parallel: its subtrees are distributed evenly over workers.

Follows section 4.2.3 of the paper on stream data services. The tree is cut at the first level that has at
least as many subtrees as there are workers. Each block of subtrees becomes a tree with its own predicate
lists, so a predicate can be evaluated once in each block. The module starts no process: `Workers` is an
interface. `InProcessWorkers` runs one block after another, and `benchmarks.tools.matching_processes` starts a
process for each block. After a change, the next event redistributes the blocks.

A partition needs the cost of each subtree. The paper takes its number of predicates (`predicate_costs`), and
leaves what events really visit to future work: `measured_visits` counts that with a sample of events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hpwsn.matching.language.predicates import Conjunction, Event
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction
from hpwsn.matching.papers.partition import Block, linear_partition
from hpwsn.matching.papers.trees import ImprovedTree, Node, NormalTree

NumberedConjunction = tuple[int, Conjunction]
"""A conjunction, and the number by which a worker reports it."""


Costs = Callable[[Sequence[Node]], list[int]]
"""The cost of each subtree."""


class Workers(Protocol):
    """Matchers of one block each."""

    def assign(self, blocks: Sequence[Sequence[NumberedConjunction]]) -> None:
        """Replace the block of each worker."""

    def match(self, events: Sequence[Event]) -> tuple[list[list[int]], int]:
        """Return the numbers found for each event by all workers, and their predicate evaluations."""


class BlockMatcher:
    """The work of one worker: an improved tree of its block."""

    def __init__(self, block: Sequence[NumberedConjunction]) -> None:
        self._tree = ImprovedTree()
        for number, conjunction in block:
            self._tree.add(number, (conjunction,))

    def match(self, events: Sequence[Event]) -> tuple[list[list[int]], int]:
        """Return the numbers found for each event, and the evaluations."""
        before = self._tree.evaluations
        found = self._tree.match_batch(events)
        return found, self._tree.evaluations - before


class InProcessWorkers:
    """Workers that run one after another in the caller's thread."""

    def __init__(self) -> None:
        self._matchers: list[BlockMatcher] = []

    def assign(self, blocks: Sequence[Sequence[NumberedConjunction]]) -> None:
        """Replace the block of each worker."""
        self._matchers = [BlockMatcher(block) for block in blocks]

    def match(self, events: Sequence[Event]) -> tuple[list[list[int]], int]:
        """Return the numbers found for each event, and the evaluations."""
        return join_answers([matcher.match(events) for matcher in self._matchers], len(events))


def join_answers(answers: Sequence[tuple[list[list[int]], int]], events: int) -> tuple[list[list[int]], int]:
    """Combine the results of all workers."""
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
        costs: Costs | None = None,
    ) -> None:
        super().__init__()
        self._k = k
        self._workers = workers or InProcessWorkers()
        self._partition = partition
        self._costs = costs or predicate_costs
        self._tree = NormalTree()
        self._numbers: dict[int, StoredConjunction] = {}
        self._next = 0
        self._stale = False

    def _insert(self, stored: StoredConjunction) -> None:
        self._tree.add(self._next, (stored.conjunction,))
        self._numbers[self._next] = stored
        stored.place = self._next
        self._next += 1
        self._stale = True

    def _delete(self, stored: StoredConjunction) -> None:
        self._tree.remove(stored.place)
        del self._numbers[stored.place]
        self._stale = True

    def blocks(self) -> list[list[Node]]:
        """Return the subtrees of each block."""
        subtrees = cut_into_subtrees(self._tree.root, self._k)
        bounds = self._partition(self._costs(subtrees), self._k)
        return [subtrees[first:last] for first, last in bounds]

    def _assign_blocks(self) -> None:
        blocks = [
            [(leaf.id, leaf.conjunction) for subtree in block for leaf in subtree.all_leaves()]
            for block in self.blocks()
        ]
        always = [(leaf.id, leaf.conjunction) for leaf in self._tree.root.leaves]
        self._workers.assign([[*always, *blocks[0]], *blocks[1:]] if blocks else [always])
        self._stale = False

    def _find(self, event: Event) -> list[StoredConjunction]:
        return self._find_batch([event])[0]

    def _find_batch(self, events: Sequence[Event]) -> list[list[StoredConjunction]]:
        if self._stale:
            self._assign_blocks()
        if not self._numbers:
            return [[] for _ in events]
        found, evaluations = self._workers.match(events)
        self.evaluations += evaluations
        return [[self._numbers[number] for number in numbers] for numbers in found]

    def match_batch(self, events: Sequence[Event]) -> list[list[int]]:
        """Return the ids for several events, which the workers get together."""
        found = self._find_batch(events)
        return [self._ids(stored, event) for stored, event in zip(found, events, strict=True)]


def predicate_costs(subtrees: Sequence[Node]) -> list[int]:
    """Return the number of predicates of each subtree."""
    return [subtree.size() for subtree in subtrees]


def measured_visits(sample: Sequence[Event]) -> Costs:
    """Return a function that counts the nodes of each subtree that these events visit.

    A block with a subtree visits the nodes above it too, so they count for each subtree.
    """

    def costs(subtrees: Sequence[Node]) -> list[int]:
        return [_visits(subtree, sample) for subtree in subtrees]

    return costs


def _visits(subtree: Node, sample: Sequence[Event]) -> int:
    tree = ImprovedTree()
    for number, leaf in enumerate(subtree.all_leaves()):
        tree.add(number, (leaf.conjunction,))
    tree.match_batch(sample)
    return tree.visits


def cut_into_subtrees(root: Node, wanted: int) -> list[Node]:
    """Return the subtrees of the first level that has `wanted` of them, or of the deepest possible level.

    A node with leaves is not cut, since its leaves would belong to no subtree.
    """
    subtrees = list(root.children.values())
    while len(subtrees) < wanted and any(_can_be_cut(node) for node in subtrees):
        subtrees = [
            part for node in subtrees for part in (node.children.values() if _can_be_cut(node) else (node,))
        ]
    return subtrees


def _can_be_cut(node: Node) -> bool:
    return bool(node.children) and not node.leaves

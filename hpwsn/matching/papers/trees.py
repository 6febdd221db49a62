"""Matching trees: the normal tree, and the improved tree of the paper on stream data services (section 4.2).

A conjunction is a path from the root: its predicates in alphabetical order of attribute. Paths with a common
prefix share nodes, and a leaf names the conjunctions of the path. The children of a node are visited only if
the node holds. The normal tree evaluates every visited node. The improved tree asks the predicate lists
first, which already know most results.

`visits` counts the nodes whose result was asked for, and `reached` the nodes whose whole path held, the root
included. The paper bounds the latter, see `visit_bound`.
"""

from __future__ import annotations

import math

from hpwsn.matching.language.predicates import Event, Predicate, predicate_holds
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, StoredConjunction, simple_predicates
from hpwsn.matching.papers.predicate_lists import ListedPredicate, PredicateLists


class Node:
    """A predicate on a path, and the nodes after it."""

    __slots__ = ("children", "leaves", "listed", "parent", "predicate")

    def __init__(self, predicate: Predicate | None = None, parent: Node | None = None) -> None:
        self.predicate = predicate
        self.parent = parent
        self.children: dict[Predicate, Node] = {}
        self.leaves: dict[StoredConjunction, None] = {}
        self.listed: ListedPredicate | None = None

    def size(self) -> int:
        """Return the number of predicates in this subtree, including its own."""
        below, pending = 0, [self]
        while pending:
            node = pending.pop()
            below += node.predicate is not None
            pending.extend(node.children.values())
        return below

    def all_leaves(self) -> list[StoredConjunction]:
        """Return the conjunctions whose paths go through this node."""
        found: list[StoredConjunction] = []
        pending = [self]
        while pending:
            node = pending.pop()
            found.extend(node.leaves)
            pending.extend(node.children.values())
        return found


class NormalTree(ConjunctionEngine):
    """A tree whose paths share common prefixes only."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Node()
        self.visits = 0
        self.reached = 0

    def _insert(self, stored: StoredConjunction) -> None:
        node = self.root
        for predicate in simple_predicates(stored.conjunction):
            child = node.children.get(predicate)
            if child is None:
                child = node.children[predicate] = self._new_node(predicate, node)
            node = child
        node.leaves[stored] = None
        stored.place = node

    def _new_node(self, predicate: Predicate, parent: Node) -> Node:
        return Node(predicate, parent)

    def _delete(self, stored: StoredConjunction) -> None:
        node: Node = stored.place
        del node.leaves[stored]
        while node.parent is not None and node.predicate and not node.children and not node.leaves:
            del node.parent.children[node.predicate]
            self._drop_node(node)
            node = node.parent

    def _drop_node(self, node: Node) -> None:
        """Clean up after a node was removed from the tree."""

    def _find(self, event: Event) -> list[StoredConjunction]:
        found: list[StoredConjunction] = []
        pending = [self.root]
        while pending:
            node = pending.pop()
            found.extend(node.leaves)
            self.reached += 1
            self.visits += len(node.children)
            self.evaluations += len(node.children)
            pending.extend(
                child for predicate, child in node.children.items() if predicate_holds(predicate, event)
            )
        return found


class ImprovedTree(NormalTree):
    """The same tree with predicate lists across its branches."""

    def __init__(self) -> None:
        super().__init__()
        self.lists = PredicateLists()

    def _new_node(self, predicate: Predicate, parent: Node) -> Node:
        node = Node(predicate, parent)
        node.listed = self.lists.acquire(predicate, node)
        return node

    def _drop_node(self, node: Node) -> None:
        if node.listed is not None:
            self.lists.release(node.listed, node)

    def _find(self, event: Event) -> list[StoredConjunction]:
        found: list[StoredConjunction] = []
        pending = [self.root]
        before = self.lists.evaluations
        self.lists.begin(event)
        holds = self.lists.holds
        reached = visits = 0
        while pending:
            node = pending.pop()
            reached += 1
            visits += len(node.children)
            if node.leaves:
                found.extend(node.leaves)
            for child in node.children.values():
                if holds(child.listed):  # type: ignore[arg-type]
                    pending.append(child)  # noqa: PERF401 - a generator costs more than it saves here
        self.evaluations += self.lists.evaluations - before
        self.reached += reached
        self.visits += visits
        return found


def visit_bound(conjunctions: int, attributes: int, values: int) -> float:
    """Return the paper's bound on the mean number of nodes that an event reaches.

    Its model: conjunctions of equalities on some of K attributes, each with V equally likely values. The
    bound is 2(K+1)·|S|^(1−λ)·(ln V + ln(K+1)), where λ = ln V/(ln V + ln K).
    """
    logarithm = math.log(values)
    exponent = 1 - logarithm / (logarithm + math.log(attributes))
    return 2 * (attributes + 1) * math.pow(conjunctions, exponent) * (logarithm + math.log(attributes + 1))

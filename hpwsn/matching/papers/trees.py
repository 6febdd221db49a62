"""Matching trees: the normal one, and the improved one of the paper on stream data services (section 4.2).

A conjunction is a path from the root, its predicates in alphabetical order of attribute; paths with the same
beginning share nodes, and a leaf says whose the path is. The children of a node are visited only where the
node holds. The normal tree evaluates every node that it visits; the improved one first asks the predicate
lists, which know or have settled most of them.
"""

from __future__ import annotations

from hpwsn.matching.language.predicates import Event, Predicate, predicate_holds
from hpwsn.matching.papers.conjunctions import ConjunctionEngine, Held, simple_predicates
from hpwsn.matching.papers.predicate_lists import Listed, PredicateLists


class Node:
    """A predicate on a path, with what follows it."""

    __slots__ = ("children", "leaves", "listed", "parent", "predicate")

    def __init__(self, predicate: Predicate | None = None, parent: Node | None = None) -> None:
        self.predicate = predicate
        self.parent = parent
        self.children: dict[Predicate, Node] = {}
        self.leaves: dict[Held, None] = {}
        self.listed: Listed | None = None

    def size(self) -> int:
        """How many predicates there are from here on, this one included."""
        below, waiting = 0, [self]
        while waiting:
            node = waiting.pop()
            below += node.predicate is not None
            waiting.extend(node.children.values())
        return below

    def all_leaves(self) -> list[Held]:
        """The conjunctions whose paths lead through here."""
        found: list[Held] = []
        waiting = [self]
        while waiting:
            node = waiting.pop()
            found.extend(node.leaves)
            waiting.extend(node.children.values())
        return found


class NormalTree(ConjunctionEngine):
    """A tree that shares nodes among equal beginnings, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Node()

    def _insert(self, held: Held) -> None:
        node = self.root
        for predicate in simple_predicates(held.conjunction):
            child = node.children.get(predicate)
            if child is None:
                child = node.children[predicate] = self._new_node(predicate, node)
            node = child
        node.leaves[held] = None
        held.place = node

    def _new_node(self, predicate: Predicate, parent: Node) -> Node:
        return Node(predicate, parent)

    def _delete(self, held: Held) -> None:
        node: Node = held.place
        del node.leaves[held]
        while node.parent is not None and node.predicate and not node.children and not node.leaves:
            del node.parent.children[node.predicate]
            self._drop_node(node)
            node = node.parent

    def _drop_node(self, node: Node) -> None:
        """What is left to do for a node that is no longer in the tree."""

    def _find(self, event: Event) -> list[Held]:
        found: list[Held] = []
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            found.extend(node.leaves)
            self.evaluations += len(node.children)
            waiting.extend(
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
        node.listed = self.lists.take(predicate, node)
        return node

    def _drop_node(self, node: Node) -> None:
        if node.listed is not None:
            self.lists.release(node.listed, node)

    def _find(self, event: Event) -> list[Held]:
        found: list[Held] = []
        waiting = [self.root]
        before = self.lists.evaluations
        self.lists.begin(event)
        holds = self.lists.holds
        while waiting:
            node = waiting.pop()
            if node.leaves:
                found.extend(node.leaves)
            for child in node.children.values():
                if holds(child.listed):  # type: ignore[arg-type]
                    waiting.append(child)  # noqa: PERF401 - a generator costs more than it saves here
        self.evaluations += self.lists.evaluations - before
        return found

"""A set of declared topics drawn as a tree for a terminal."""

from collections.abc import Iterable, Iterator, Mapping

from hpwsn.topics.declaration import Declaration
from hpwsn_client.wsn.topics import Topic

_Children = Mapping[Topic | None, list[Declaration]]


def draw_tree(declarations: Iterable[Declaration], ascii_only: bool = False) -> Iterator[str]:
    """One line a topic, its description behind it and its routing policy in brackets."""
    children: dict[Topic | None, list[Declaration]] = {}
    for declaration in declarations:
        children.setdefault(declaration.topic.parent, []).append(declaration)
    branches = ("|-- ", "`-- ", "|   ") if ascii_only else ("├── ", "└── ", "│   ")
    for tree in children.get(None, []):
        yield _line(str(tree.topic), tree)
        yield from _branches(tree.topic, children, "", branches)


def _branches(
    topic: Topic, children: _Children, indent: str, branches: tuple[str, str, str]
) -> Iterator[str]:
    fork, last, trunk = branches
    below = children.get(topic, [])
    for position, child in enumerate(below, start=1):
        is_last = position == len(below)
        yield indent + (last if is_last else fork) + _line(child.topic.path[-1], child)
        yield from _branches(child.topic, children, indent + ("    " if is_last else trunk), branches)


def _line(name: str, declaration: Declaration) -> str:
    routing = f"  [{declaration.routing}]" if declaration.routing else ""
    description = f"  {' '.join(declaration.description.split())}" if declaration.description else ""
    return f"{name}{routing}{description}"

"""A node: the one place where concrete classes are chosen, joined, started in order and stopped in order."""

from hpwsn.node.node import Node, serve

__all__ = ["Node", "serve"]

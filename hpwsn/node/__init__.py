"""A node: the only place where concrete classes are chosen, connected, started and stopped in order."""

from hpwsn.node.node import Node, serve

__all__ = ["Node", "serve"]

"""Nodes for this suite."""

from tests.fixtures import fast_retry_node, node, shared_node

__all__ = ["fast_retry_node", "node", "shared_node"]

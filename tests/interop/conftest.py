"""Nodes for this suite, and zeep with its receivers."""

from tests.fixtures import fast_retry_node, node, shared_node
from tests.interop.zeep_foreign import foreign, receivers, root

__all__ = ["fast_retry_node", "foreign", "node", "receivers", "root", "shared_node"]

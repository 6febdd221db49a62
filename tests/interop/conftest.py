"""Nodes and servers for this suite, and zeep with its receivers."""

from tests.activemq import activemq
from tests.fixtures import fast_retry_node, node, shared_node
from tests.interop.zeep_foreign import foreign, receivers, root

__all__ = ["activemq", "fast_retry_node", "foreign", "node", "receivers", "root", "shared_node"]

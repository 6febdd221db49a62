"""Nodes and servers for this suite."""

from tests.activemq import activemq, own_activemq
from tests.fixtures import fast_retry_node, node, shared_node, slapd
from tests.mosquitto import mosquitto

__all__ = ["activemq", "fast_retry_node", "mosquitto", "node", "own_activemq", "shared_node", "slapd"]

"""Real servers for this suite."""

from tests.activemq import activemq

__all__ = ["activemq"]

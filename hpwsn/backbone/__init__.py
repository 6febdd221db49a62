"""Backbones: what carries accepted notifications from the doors to the journals of the nodes that share it."""

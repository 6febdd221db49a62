"""Backbones: what carries accepted notifications from the doors to the journals of nodes that share it."""

"""Backbones: what carries accepted notifications from the doors to the journal of every node that shares it."""

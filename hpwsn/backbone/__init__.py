"""Backbones, which carry accepted notifications to the journal of a node."""

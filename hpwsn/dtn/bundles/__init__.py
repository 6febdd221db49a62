"""Bundles: files in which carriers take events from node to node."""

"""Readings that come in: checked, published as events, and kept for inspection if they are rejected."""

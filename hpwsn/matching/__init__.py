"""Matching by content: engines and what they share."""

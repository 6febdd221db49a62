"""Registered publishers, and publishing on demand."""

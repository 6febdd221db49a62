"""Leases of resources, expiry of messages, and the retry policy. Pure."""

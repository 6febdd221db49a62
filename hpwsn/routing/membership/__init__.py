"""Membership of a node in its cluster: registration, heartbeats, signed requests, the last topology."""

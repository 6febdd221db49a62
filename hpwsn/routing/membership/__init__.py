"""A node as a member of its cluster: registration, heartbeats, signed requests, the last topology."""

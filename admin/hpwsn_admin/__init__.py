"""The admin node: the registry of the nodes of all clusters, and its HTTP API.

It knows only what nodes report about themselves. Notifications do not pass through it.
"""

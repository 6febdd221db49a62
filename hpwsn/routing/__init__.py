"""Routing of notifications between nodes: topology, interest, the router, and links."""

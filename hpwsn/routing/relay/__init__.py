"""Relay of operator requests: a node or the admin node sends them on to the node that the address names."""

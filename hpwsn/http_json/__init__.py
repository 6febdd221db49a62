"""JSON over HTTP, for the doors of a node, the relay between nodes, and the admin node."""

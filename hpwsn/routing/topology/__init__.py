"""The topology: nodes, clusters and representatives, and the view of one node. Pure."""

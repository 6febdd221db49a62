"""The nodes, their clusters and representatives, as data and as one node sees them. Pure."""

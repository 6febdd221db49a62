"""The operator API: health, status, metrics, and the resources of a node."""

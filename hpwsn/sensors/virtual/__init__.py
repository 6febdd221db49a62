"""Virtual sensors of a node: their definitions, who uses them, and the publishing of their results."""

"""Publications between nodes: reliable ones until acknowledged, and best effort. Pure."""

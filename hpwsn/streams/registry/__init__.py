"""The stream services that are registered at a node, and the file that keeps them."""

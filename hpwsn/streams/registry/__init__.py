"""The stream services that a node knows, and the file that keeps them."""

"""The byte scanner for ordinary Notify requests: bytes in, runs out, without a tree of elements."""

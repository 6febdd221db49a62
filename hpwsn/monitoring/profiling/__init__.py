"""Samples of CPU time and memory, taken on demand."""

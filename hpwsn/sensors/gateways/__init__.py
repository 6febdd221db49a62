"""Gateways to physical sensors that do not speak HTTP, and the commands for sensors on demand."""

"""Sensors at a fixed rate, and what must come of their readings: parts of the benchmark `sensors`."""

"""Readings as data: their formats, their checks, and the runs that carry them."""

"""Simulated networks of sensors for trials: weather and earthquakes, with faults and from a seed."""

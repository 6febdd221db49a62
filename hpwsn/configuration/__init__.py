"""Loads the settings: defaults, file, environment and flags, in this order."""

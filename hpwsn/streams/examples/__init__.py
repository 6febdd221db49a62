"""Definitions of services to begin with; they are TOML files."""

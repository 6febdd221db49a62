"""Example definitions of services, as TOML files."""

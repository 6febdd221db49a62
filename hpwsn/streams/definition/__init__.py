"""The definition of a stream service: TOML, schema, windows, conditions, the port of operators. Pure."""

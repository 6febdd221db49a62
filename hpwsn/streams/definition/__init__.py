"""The definition of a stream service: TOML, schema, windows, conditions, the operator interface. Pure."""

"""The port of the topic directory, its TOML file implementation, and the live tree that follows it."""

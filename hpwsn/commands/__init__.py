"""The `hpwsn` command: one module for each subcommand, and one HTTP client for all."""

"""Content filters of subscriptions: compiled, grouped, and evaluated on payloads. Pure."""

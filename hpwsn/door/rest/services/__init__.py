"""Stream services over HTTP."""

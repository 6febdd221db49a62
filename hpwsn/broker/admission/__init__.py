"""The only way in for notifications: checks, message ids, and one append for each turn of the event loop."""

"""Doors in processes of their own: `hpwsn serve --workers N`."""

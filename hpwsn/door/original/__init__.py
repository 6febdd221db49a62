"""The door for clients of the original HPwsn, which send WsnProcess messages."""

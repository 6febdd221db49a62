"""The door for clients of the original HPwsn: WsnProcess messages as the standard's operations."""

"""Retention: removal of old entries from the journal by age and size, in bounded steps."""

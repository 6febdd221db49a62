"""Frames and destination names on the message broker. Pure."""

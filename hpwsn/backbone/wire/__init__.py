"""The format of frames and of destination names on the message broker. Pure."""

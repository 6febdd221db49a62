"""Built on the client: the blocking classes, and publishers on demand."""

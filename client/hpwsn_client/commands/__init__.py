"""The command line of the client: publish, listen, completion."""

"""The client's command line: publish, listen and completion."""

"""JSON over HTTP: events, stream services, and the operator API, each in a folder of its own."""

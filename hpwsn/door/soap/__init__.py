"""The SOAP door: HTTP handlers, dispatch with Spyne, the operations, and the proxy to owner nodes."""

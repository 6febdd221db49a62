"""The doors of a node: SOAP, and what operators look at. Doors speak protocols and decide nothing."""

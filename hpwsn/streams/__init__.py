"""Stream data services: definitions, operators, the registry of a node, and the Spark job."""

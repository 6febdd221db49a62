"""Stream data services: definitions, operators, the Spark job, and the node's registry of services."""

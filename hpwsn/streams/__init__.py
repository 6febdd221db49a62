"""Stream data services: definitions, operators, and the Spark job that runs them."""

"""Reading events for Spark: requests to the node, columns in Arrow, and the readers of the data source."""

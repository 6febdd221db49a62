"""From the rows of a Spark query to notifications: publishing, the sinks, and what is run again."""

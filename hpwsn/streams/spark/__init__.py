"""The part of stream services that needs Spark: nothing outside of it imports PySpark."""

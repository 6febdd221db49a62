"""Stream data services on Spark: everything here needs PySpark, and nothing outside of here does."""

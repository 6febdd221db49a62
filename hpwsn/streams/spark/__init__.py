"""Stream data services on Spark: the only package that requires PySpark."""

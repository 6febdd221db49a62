"""The history of readings and of the results of virtual sensors: Parquet files, queries and plots."""

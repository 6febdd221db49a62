"""What a stream job needs on a Spark cluster: the archive for the workers, and settings."""

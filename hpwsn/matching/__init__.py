"""Content-based matching: the predicate language, content filters, and matching engines."""

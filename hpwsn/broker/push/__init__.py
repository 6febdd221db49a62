"""HTTP pushes to consumers: connection pool, connection, request."""

"""OGC SensorThings 1.1, read-only: physical sensors as Things, their quantities as Datastreams."""

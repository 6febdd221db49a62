"""Physical and virtual sensors, and their readings, over HTTP."""

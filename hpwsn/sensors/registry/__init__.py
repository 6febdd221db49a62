"""The registry of physical sensors, in the journal and in the directory."""

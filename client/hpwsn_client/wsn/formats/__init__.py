"""Other message formats: those of the original HPwsn, ONVIF and JSON."""

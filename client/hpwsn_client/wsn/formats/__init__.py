"""Other forms of messages: the original HPwsn, ONVIF, JSON."""

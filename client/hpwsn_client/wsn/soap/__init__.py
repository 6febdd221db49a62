"""XML, SOAP envelopes, WS-Addressing, faults and times."""

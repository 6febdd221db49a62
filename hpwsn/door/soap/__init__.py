"""From a SOAP envelope to a broker operation and back: Spyne dispatch, operations, property documents."""

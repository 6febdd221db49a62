"""JSON events and their XML payloads, converted many at once by their shape."""

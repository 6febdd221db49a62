"""Events over HTTP: POST, poll, SSE and WebSocket."""

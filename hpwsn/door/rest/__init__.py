"""JSON over HTTP: events by POST, poll, SSE and WebSocket, and the operator API."""

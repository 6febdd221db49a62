"""Readers of the log without a subscription: poll, SSE, WebSocket."""

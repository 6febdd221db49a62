"""From the socket to a request: connection limits, TLS, the HTTP fast lane, and the hand-over to aiohttp."""

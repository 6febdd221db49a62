"""Topics and topic expressions: WS-Topics 1.3."""

"""Subscriptions with their cursors and conditions, who wants a topic, and pull points."""

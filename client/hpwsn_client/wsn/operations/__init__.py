"""The messages of WS-Notification and WS-Resource, with filters and policies."""

"""The door for carriers between nodes."""

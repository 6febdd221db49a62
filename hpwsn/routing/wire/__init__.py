"""The binary forms between nodes: messages, patterns, frames, fragments, pacing. Pure."""

"""The wire formats between nodes: messages, patterns, frames, fragments, pacing. Pure."""

"""How nodes reach each other: fragments, frames, links, interest, membership."""

"""Physical sensors as data: what they measure, where they are, and how they are chosen."""

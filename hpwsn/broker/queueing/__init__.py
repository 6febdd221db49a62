"""The decisions of delivery, without I/O: the next step, the order of a queue, and what leaves it."""

"""The types of the objects in memory: how many there are and how large they are, by a sample.

The garbage collector knows only objects that can refer to others; texts and bytes are found through them, one
step away. Objects of the start are frozen and not counted one by one. The list of all objects is made in one
step, in which the whole process waits; the rest runs beside the event loop, which slows it down.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import defaultdict
from typing import Any

MOST_OBJECTS = 200_000
"""Objects that are looked at; of more, every Nth."""
MOST_TYPES = 30


def memory_profile() -> dict[str, Any]:
    """The types with the most bytes, as estimates where not all objects were looked at."""
    began = time.perf_counter()
    objects = gc.get_objects()
    paused = time.perf_counter() - began
    step = -(-len(objects) // MOST_OBJECTS) or 1
    counts: defaultdict[type, int] = defaultdict(int)
    sizes: defaultdict[type, int] = defaultdict(int)
    seen: set[int] = set()

    def note(found: object) -> None:
        counts[type(found)] += 1
        sizes[type(found)] += sys.getsizeof(found, 0)

    for place in range(0, len(objects), step):
        note(objects[place])
        for other in gc.get_referents(objects[place]):
            if not gc.is_tracked(other) and id(other) not in seen:
                seen.add(id(other))
                note(other)
    largest = sorted(sizes, key=lambda kind: (-sizes[kind], kind.__qualname__))[:MOST_TYPES]
    return {
        "objects": len(objects),
        "frozen": gc.get_freeze_count(),
        "sampled": round(1 / step, 4),
        "paused": round(paused, 4),
        "took": round(time.perf_counter() - began, 3),
        "types": [
            {"type": _name(kind), "count": counts[kind] * step, "bytes": sizes[kind] * step}
            for kind in largest
        ],
    }


def _name(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"

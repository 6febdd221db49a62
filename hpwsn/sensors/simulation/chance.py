"""Random numbers that depend only on a seed and on what they are for.

A sequence of random numbers would change for all sensors when one sensor or one fault is added. Here each
number is a digest of the seed and of its purpose: the sensor, the time, the fault. So any reading can be
computed alone, and the numbers are the same on every machine and in every version of Python.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from struct import Struct

_words = Struct("<8I").unpack
_SIZE = 32
_STEP = 1.0 / 2**32
Uniforms = tuple[float, float, float, float, float, float, float, float]


class Chance:
    """The random numbers of one seed."""

    __slots__ = ("_seed",)

    def __init__(self, seed: int) -> None:
        self._seed = f"{seed} "

    def uniforms(self, purpose: str, *which: int) -> Uniforms:
        """Eight independent numbers, each above 0 and below 1."""
        text = f"{self._seed}{purpose} {' '.join(map(str, which))}"
        found = _words(blake2b(text.encode(), digest_size=_SIZE).digest())
        a, b, c, d, e, f, g, h = [(word + 0.5) * _STEP for word in found]
        return a, b, c, d, e, f, g, h

    def uniform(self, purpose: str, *which: int) -> float:
        """A number above 0 and below 1."""
        return self.uniforms(purpose, *which)[0]

    def normals(self, purpose: str, *which: int) -> tuple[float, float, float, float]:
        """Four independent numbers of the standard normal distribution."""
        a, b, c, d, e, f, _, _ = self.uniforms(purpose, *which)
        # Box and Muller: two uniform numbers give two normal ones.
        first, second = math.sqrt(-2 * math.log(a)), math.sqrt(-2 * math.log(b))
        third = math.sqrt(-2 * math.log(e))
        return (
            first * math.cos(math.tau * c),
            first * math.sin(math.tau * c),
            second * math.cos(math.tau * d),
            third * math.cos(math.tau * f),
        )

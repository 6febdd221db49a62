"""The section `dtn`: what carriers take from node to node, and the limits of their bundles.

The limits bound what a bundle costs a node: memory and a file of `bundle_bytes` when it is made or
delivered, and what is kept until a gap is filled.
"""

from __future__ import annotations

from dataclasses import dataclass

from hpwsn.settings.quantities import Duration, Integer, Size, Text
from hpwsn.settings.setting import MIB, setting

HOUR = 3600.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class DtnSettings:
    """Carriers between nodes without links; they are off without `key_file`."""

    key_file: str = setting(
        "",
        Text("a file, or empty for no carriers"),
        "File with the key that nodes share for bundles: a text of 16 bytes or more.",
    )
    gap_wait: float = setting(
        HOUR,
        Duration(0),
        "How long events wait for missing ones of their origin before they are published without them.",
    )
    gamma: int = setting(
        4,
        Integer(0, 1_000_000),
        "Nodes in the largest cluster whose events a carrier gives to nodes that its bundle is not for.",
    )
    bundle_bytes: int = setting(
        64 * MIB, Size(64 * 1024, 1024 * MIB), "Maximum size of a bundle, made here or delivered here."
    )
    bundle_events: int = setting(1_000_000, Integer(1, 100_000_000), "Maximum events in a bundle.")
    bundles_kept: int = setting(
        16, Integer(1, 10_000), "Bundles that wait for their download; of more, the oldest is removed."
    )
    held_events: int = setting(
        100_000, Integer(0, 10_000_000), "Maximum events held for missing ones; further ones are not taken."
    )
    held_bytes: int = setting(64 * MIB, Size(0), "Maximum bytes of held events; further ones are not taken.")
    origins: int = setting(
        10_000, Integer(1, 1_000_000), "Maximum nodes whose events are taken; those of further ones are not."
    )

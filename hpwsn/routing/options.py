"""What the links of a node are told, apart from who the members are."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Sizes and times of links; the settings `routing` give them."""

    fragment_size: int = 8000
    buffer_bytes: int = 4 << 20
    queue_bytes: int = 64 << 20
    reassembly_timeout: float = 5.0
    reassembly_bytes: int = 64 << 20
    reassembly_messages: int = 1024

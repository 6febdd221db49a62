"""One setting: what its field says of it, and its full name.

Where something listens, and by what address it is reached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hpwsn.settings.quantities import ValueKind

ANY_HOST = frozenset({"", "0.0.0.0", "::"})
"""Addresses to listen on that mean every one, and by which nobody is reached."""


def host_and_port(key: str, text: str) -> tuple[str, int]:
    """The two parts of `host:port`, the value of the setting `key`."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"{key} is {text!r}, and must be host:port")
    return host.strip("[]"), int(port)


MIB = 1024**2


def setting(default: Any, kind: ValueKind, about: str, secret: bool = False) -> Any:
    """A dataclass field that carries its kind and help."""
    return field(default=default, metadata={"kind": kind, "about": about, "secret": secret})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by its full name."""

    section: str
    name: str
    default: object
    kind: ValueKind
    about: str
    secret: bool

    @property
    def key(self) -> str:
        """The full name, `section.name`."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"HPWSN_{self.section}_{self.name}".upper()

"""The description of one setting, and the dataclass field that carries it.

A section is a dataclass; each of its fields is made by `setting` and has the kind and the description of the
value as metadata. `host_and_port` parses the values of settings that are addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hpwsn.settings.quantities import ValueKind

MIB = 1024**2

ANY_HOST = frozenset({"", "0.0.0.0", "::"})
"""Listening addresses that mean all addresses; other hosts cannot connect to them."""


def setting(default: Any, kind: ValueKind, about: str, secret: bool = False) -> Any:
    """A dataclass field with the kind and the description of its setting as metadata."""
    return field(default=default, metadata={"kind": kind, "about": about, "secret": secret})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting; `secret` values are never printed."""

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
        """The name of its environment variable."""
        return f"HPWSN_{self.section}_{self.name}".upper()


def host_and_port(key: str, text: str) -> tuple[str, int]:
    """Split `host:port`, the value of the setting `key`; ValueError if it has another form."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"{key} is {text!r}; it must be host:port")
    return host.strip("[]"), int(port)

"""One setting: what its field says of it, and its full name."""

from dataclasses import dataclass, field
from typing import Any

from hpwsn.quantities import Kind

MIB = 1024**2


def setting(default: Any, kind: Kind, about: str, secret: bool = False) -> Any:
    """A dataclass field that carries its kind and help."""
    return field(default=default, metadata={"kind": kind, "about": about, "secret": secret})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting by its full name."""

    section: str
    name: str
    default: object
    kind: Kind
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

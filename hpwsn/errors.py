"""What can go wrong in the node apart from a request's own faults.

HpwsnError
├── BadArguments         the arguments of a command make no sense
├── ConfigError          the configuration cannot be used; it lists all that is wrong
├── SettingError         one setting names something that cannot be used on this machine
├── JournalUnavailable   the journal cannot take this now; the reason says why and what to do
├── JournalDamaged       the database file is not usable; moving or repairing it is a person's decision
├── JournalTooNew        written by a later version of HPwsn
├── BackboneUnavailable  the backbone cannot take this now; the reason says why and what to do
├── ClientDisconnected   the client closed its connection before the answer was ready
└── DataDirectoryInUse   another node has the data directory

The faults that travel to a client are hpwsn_client.wsn.soap.faults; the door turns these into those.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


class HpwsnError(Exception):
    """The root of the node's own errors."""


class BadArguments(HpwsnError):
    """The arguments of a command make no sense, whatever node is asked."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the configuration: the setting, its value, where it came from and the remedy."""

    key: str
    value: str
    source: str
    remedy: str

    def __str__(self) -> str:
        subject = " = ".join(part for part in (self.key, self.value) if part)
        return f"{self.source}: {subject} {self.remedy}" if subject else f"{self.source} {self.remedy}"

    def fields(self) -> dict[str, str]:
        """The parts by name, for a script to read."""
        return asdict(self)


class ConfigError(HpwsnError):
    """The configuration cannot be used; `problems` is everything wrong with it, a line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        several = f"the configuration has {len(problems)} problems:{lines}"
        super().__init__(str(problems[0]) if len(problems) == 1 else several)
        self.problems = tuple(problems)


class SettingError(HpwsnError):
    """What a setting names cannot be used; `reason` is said after the value, with the remedy."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(f"{key} = {value} {reason}")
        self.key = key
        self.reason = reason


class JournalUnavailable(HpwsnError):
    """The journal did not store it and may do so later."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ClientDisconnected(HpwsnError):
    """The client has gone while its answer was waited for, so that nobody will read one."""


class BackboneUnavailable(HpwsnError):
    """The backbone did not take it and may do so later."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class JournalDamaged(HpwsnError):
    """The journal's file is damaged or is no journal."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(
            f"{path} cannot be used as a journal: {detail}. Nothing was changed. Keep a copy of it and of "
            f"{path.name}-wal, then restore a backup, or try `sqlite3 {path} .recover | sqlite3 new.db`, "
            "or move both files away to start with an empty journal (its subscriptions are lost)"
        )
        self.path = path
        self.detail = detail


class JournalTooNew(HpwsnError):
    """The journal's file was written by a later version."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has journal version {found}, this HPwsn knows versions up to {known}: "
            "start the HPwsn that wrote it, or a later one, or name another data directory"
        )
        self.path = path
        self.found = found
        self.known = known


class DataDirectoryInUse(HpwsnError):
    """Another process holds the data directory."""

    def __init__(self, directory: Path, holder: str) -> None:
        super().__init__(
            f"the data directory {directory} is in use by process {holder or 'unknown'}: "
            "stop that node, or give this one its own directory with --data"
        )
        self.directory = directory
        self.holder = holder

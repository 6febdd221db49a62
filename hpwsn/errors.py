"""The errors of a node, apart from the faults that a request gets as its answer.

HpwsnError
├── BadArguments         the arguments of a command are not valid
├── ConfigError          the configuration is not valid; it lists all problems
├── SettingError         the value of one setting cannot be used on this machine
├── JournalUnavailable   the journal cannot store data now; the reason says why and what to do
├── JournalDamaged       the database file is not usable; an operator must repair or move it
├── JournalTooNew        the database file was written by a later version of HPwsn
├── BackboneUnavailable  the backbone cannot accept notifications now; the reason says why and what to do
├── ClientDisconnected   the client closed its connection before the answer was ready
└── DataDirectoryInUse   another process uses the data directory

hpwsn_client.wsn.soap.faults has the faults that clients receive; the door maps these errors to them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


class HpwsnError(Exception):
    """The base class of the node's errors."""


class BadArguments(HpwsnError):
    """The arguments of a command are not valid, independent of any node."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of the configuration: the setting, its value, the source of the value and the remedy."""

    key: str
    value: str
    source: str
    remedy: str

    def __str__(self) -> str:
        subject = " = ".join(part for part in (self.key, self.value) if part)
        return f"{self.source}: {subject} {self.remedy}" if subject else f"{self.source} {self.remedy}"

    def fields(self) -> dict[str, str]:
        """The fields by name, for JSON output."""
        return asdict(self)


class ConfigError(HpwsnError):
    """The configuration is not valid; `problems` has every problem, and the text has a line for each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        several = f"the configuration has {len(problems)} problems:{lines}"
        super().__init__(str(problems[0]) if len(problems) == 1 else several)
        self.problems = tuple(problems)


class SettingError(HpwsnError):
    """The value of a setting cannot be used; `reason` follows the value in the text and has the remedy."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(f"{key} = {value} {reason}")
        self.key = key
        self.reason = reason


class JournalUnavailable(HpwsnError):
    """The journal could not store the data; a later attempt may succeed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ClientDisconnected(HpwsnError):
    """The client closed its connection before the answer was ready, so no answer is sent."""


class BackboneUnavailable(HpwsnError):
    """The backbone did not accept the notifications; a later attempt may succeed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class JournalDamaged(HpwsnError):
    """The journal's file is damaged, or is not a journal."""

    def __init__(self, path: Path, detail: str) -> None:
        super().__init__(
            f"{path} cannot be used as a journal: {detail}. Nothing was changed. Keep a copy of it and of "
            f"{path.name}-wal, then restore a backup, or try `sqlite3 {path} .recover | sqlite3 new.db`, "
            "or move both files away to start with an empty journal without subscriptions"
        )
        self.path = path
        self.detail = detail


class JournalTooNew(HpwsnError):
    """The journal's file was written by a later version."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has journal version {found}, this HPwsn supports versions up to {known}; "
            "start the HPwsn that wrote it, or a later one, or use another data directory"
        )
        self.path = path
        self.found = found
        self.known = known


class DataDirectoryInUse(HpwsnError):
    """Another process uses the data directory; `holder` is its id, or empty if unknown."""

    def __init__(self, directory: Path, holder: str) -> None:
        super().__init__(
            f"the data directory {directory} is in use by process {holder or 'unknown'}; "
            "stop that node, or give this one its own directory with --data"
        )
        self.directory = directory
        self.holder = holder

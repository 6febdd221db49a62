"""A definition that a client has posted: what it may contain, before any of it is carried out.

A client of the door is not the node's user. Without the operator's consent, a posted definition must not run
code (a Python function, a query in SQL, which can call Java methods and read files) and must not name local
files. Everything else that can be wrong is found by `hpwsn streams check`, in a process of its own. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from hpwsn.streams.definition.definition import Definition
from hpwsn.streams.definition.definition_toml import read_document
from hpwsn.streams.definition.problems import DefinitionError, Problem

MAX_DEFINITION = 256 * 1024
"""Maximum bytes of a posted definition."""
_CODE = {"function": "a Python function", "sql": "a query in SQL"}
_NO_CODE = "runs code as the node's user; the node accepts it only with streams.agent_functions = true"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the operator allows: code, and the folder whose files may be read; empty for none."""

    functions: bool = False
    folder: str = ""


def read_posted(text: str, allowed: Allowed) -> Definition:
    """The one service of a posted definition, in its form; DefinitionError lists all that is not allowed.

    Problems of the form are left to the check, which reports them together with those of the meaning. If the
    text is not TOML, or has no service or several, the error says so.
    """
    forms = read_document(text)
    if len(forms) != 1:
        places = [one.definition.place for one in forms[1:]]
        raise DefinitionError(
            [Problem(one, "is a second service; post one in each request", "service") for one in places]
        )
    definition = forms[0].definition
    if problems := [*_refused_operators(definition, allowed), *_refused_inputs(definition, allowed)]:
        raise DefinitionError(problems)
    return definition


def _refused_operators(definition: Definition, allowed: Allowed) -> Iterator[Problem]:
    for number, op in enumerate(definition.ops, 1):
        if op.op in _CODE and not allowed.functions:
            yield Problem(op.place, f"{_CODE[op.op]} {_NO_CODE}", f"operator {number} ({op.op})")


def _refused_inputs(definition: Definition, allowed: Allowed) -> Iterator[Problem]:
    for one in definition.inputs.values():
        part = f"input {one.name}"
        if one.text("file"):
            message = "names a file of the client; give the topic and the schema of the service"
            yield Problem(one.place, message, part, "file")
        setting = "path" if one.source == "files" else "past"
        if setting in one.settings and not _is_inside(one.text(setting), allowed.folder):
            place = f"below {allowed.folder} (streams.agent_folder)"
            message = (
                f"must be an absolute path {place}"
                if allowed.folder
                else "is refused: this node reads no files for clients (streams.agent_folder)"
            )
            yield Problem(one.place, message, part, setting)


def _is_inside(path: str, folder: str) -> bool:
    """Whether a path is in a folder by its text; `..` and a URL such as `file:` never are."""
    found = PurePosixPath(path)
    return bool(folder) and ".." not in found.parts and found.is_relative_to(folder) and found.is_absolute()

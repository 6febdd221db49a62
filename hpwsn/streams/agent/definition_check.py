"""Checks a posted definition with `hpwsn streams check`, in a process of its own.

So a posted definition is judged exactly as one in a file, a query in SQL by Spark. No module of a user's
function is ever loaded into the node. One check runs at a time, because Spark may start for it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from hpwsn.errors import HpwsnError
from hpwsn.streams.definition.problems import DefinitionError, Place, Problem

CHECK_TIMEOUT = 120.0
"""Seconds that a check may take."""


class CheckFailed(HpwsnError):
    """A definition could not be checked; this says nothing about the definition."""


@dataclass(frozen=True, slots=True)
class CheckedService:
    """A service as its definition describes it; `plan` has its operators and their drawing."""

    uri: str
    topic: str
    description: str
    attributes: dict[str, str]
    constraints: dict[str, str]
    inputs: dict[str, str]
    plan: dict[str, Any]


class DefinitionCheck:
    """Runs checks, one at a time."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()

    async def check(self, text: str) -> CheckedService:
        """The service of a valid definition; DefinitionError lists everything that is wrong."""
        async with self._one:
            output = await asyncio.to_thread(_run, text)
        try:
            found = json.loads(output.stdout)
        except ValueError:
            last = output.stderr.strip().splitlines()[-1:] or [f"exit status {output.returncode}"]
            raise CheckFailed(f"the definition could not be checked: {last[0]}") from None
        if not found["ok"]:
            raise DefinitionError([_problem(one) for one in found["problems"]])
        one = found["services"][0]
        attributes = {each["name"]: each["type"] for each in one["schema"]}
        return CheckedService(
            one["uri"],
            one["topic"],
            one["description"],
            attributes,
            one["constraints"],
            one["inputs"],
            one["plan"],
        )


def _run(text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hpwsn", "streams", "check", "/dev/stdin", "--json"]
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", timeout=CHECK_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise CheckFailed(f"the check of the definition took longer than {CHECK_TIMEOUT:g} s") from None


def _problem(fields: dict[str, Any]) -> Problem:
    # The file is standard input, which says nothing to the client.
    return Problem(Place("", fields["place"]["line"]), fields["message"], fields["part"], fields["attribute"])

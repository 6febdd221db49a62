"""Posts readings to a node in batches, tries again while the node is away, and counts what the node says.

A repeated batch is safe: the node knows a reading by its sensor and time, and rejects the second as a
duplicate. So an answer that was lost costs a count, and no reading.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

from hpwsn.commands.operations.operator_api import NodeRequestFailed, address, send
from hpwsn.logs import counted
from hpwsn_client.commands.completion import print_warning

PAUSE, LONGEST_PAUSE = 0.5, 10.0
"""Seconds before the first repetition, doubled each time, and the most."""
NONE_ACCEPTED = 422
REGISTRATION = "Hpwsn-Registration"
MOST_SHOWN = 10
"""Rejected readings that are shown one by one."""


class ReadingPost:
    """What was posted to `/readings` of the node of the arguments, or for one sensor to its own address."""

    def __init__(self, arguments: argparse.Namespace, sensor: str | None, patience: float) -> None:
        path = ("readings",) if sensor is None else ("sensors", sensor, "readings")
        self._url = address(arguments, *path)
        self._ca = arguments.ca
        registration = arguments.registration
        self._headers = {} if registration is None else {REGISTRATION: registration}
        self._patience = patience
        self._answered = False
        self.accepted = 0
        self.rejected: Counter[str] = Counter()

    @property
    def sent(self) -> int:
        """Readings that the node has answered for."""
        return self.accepted + self.rejected.total()

    def post(self, body: bytes, content_type: str) -> list[tuple[int, str]]:
        """Post a batch, and return the index and the reason of each rejected reading."""
        answer = self._send(body, content_type)
        self._answered = True
        self.accepted += int(answer.get("accepted", 0))
        errors = [(int(each["index"]), str(each["reason"])) for each in answer.get("errors", [])]
        self.rejected.update(reason for _, reason in errors)
        return errors

    def _send(self, body: bytes, content_type: str) -> dict[str, Any]:
        until, pause = time.monotonic() + self._patience, PAUSE
        while True:
            try:
                return send(
                    "POST",
                    self._url,
                    body,
                    content_type=content_type,
                    headers=self._headers,
                    ca=self._ca,
                    accepted=(NONE_ACCEPTED,),
                )
            except NodeRequestFailed as error:
                # A wrong address is found at the first batch; later a node without an answer is restarting.
                away = error.status == 503 or (error.status is None and self._answered)
                if not away or time.monotonic() + pause > until:
                    raise
                print_warning(f"{error}; trying again in {pause:g} s")
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    def summary(self) -> str:
        """What became of the readings, in one line."""
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.rejected.items()))
        rejected = f"{self.rejected.total():,} rejected" + (f" ({reasons})" if reasons else "")
        return f"{counted(self.sent, 'reading')}: {self.accepted:,} accepted, {rejected}"

    def hint(self) -> None:
        """Say on standard error where rejected readings are explained, if there are any."""
        if self.rejected:
            print("`hpwsn sensors rejected` says what is wrong with each", file=sys.stderr, flush=True)

    @property
    def failed(self) -> bool:
        """Whether there were readings, and the node accepted none."""
        return self.sent > 0 and not self.accepted

    def figures(self) -> dict[str, Any]:
        """The same for a script."""
        return {
            "sent": self.sent,
            "accepted": self.accepted,
            "rejected": dict(sorted(self.rejected.items())),
        }


class Progress:
    """A line on standard error every few seconds."""

    def __init__(self, every: float = 5.0) -> None:
        self._every = every
        self._begins = time.monotonic()
        self._next = self._begins + every

    def say(self, text: str) -> None:
        """Print the text with the seconds so far, if the last line is old enough."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._every
            print(f"{now - self._begins:5.0f} s  {text}", file=sys.stderr, flush=True)

"""A process that appends until it is killed, and the files that it leaves."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_PROGRAM = """
import asyncio, sys
from pathlib import Path
from hpwsn.journal import Journal
from hpwsn.notification import Notification, Run
from hpwsn_client.wsn.operations.notifications import MESSAGE_CLOSE
from hpwsn_client.wsn.topics.topic_expressions import Topic

async def publish(journal, wal, number):
    while True:
        payload = b"<m>%d</m>" % number * 18
        notification = Notification(Topic.parse("A"), payload + MESSAGE_CLOSE, 0, len(payload), 1.0)
        first = await journal.append([Run.of(notification)] * 3)
        sys.stdout.write(f"{first} {number} {wal.stat().st_size}\\n")
        sys.stdout.flush()

async def main():
    path, publishers = Path(sys.argv[1]), int(sys.argv[2])
    journal = Journal(path, reserve=0)
    await journal.open()
    wal = path.with_name(path.name + "-wal")
    await asyncio.gather(*[publish(journal, wal, number) for number in range(publishers)])

asyncio.run(main())
"""


def start(path: Path, publishers: int = 16) -> "subprocess.Popen[str]":
    """Begin to append triples; each line of output is the first offset, the publisher and the log's size."""
    return run(_PROGRAM, str(path), str(publishers))


def run(program: str, *arguments: str) -> "subprocess.Popen[str]":
    """A Python program in a process of its own, to talk to."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def kill_after(path: Path, lines: int, publishers: int = 16) -> list[tuple[int, int, int]]:
    """Append until so many were acknowledged, kill -9, and give all that were."""
    process = start(path, publishers)
    assert process.stdout is not None
    read = [process.stdout.readline() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    rest, errors = process.communicate()
    assert errors == ""
    whole = [line.split() for line in [*read, *rest.splitlines(keepends=True)] if line.endswith("\n")]
    return [(int(first), int(number), int(size)) for first, number, size in whole]


def copy(path: Path, name: str) -> Path:
    """The journal and its write-ahead log in a directory of their own."""
    target = path.parent.with_name(name) / path.name
    target.parent.mkdir()
    for file in files(path):
        shutil.copy(file, target.parent)
    return target


def files(path: Path) -> Sequence[Path]:
    """The files that hold the data: the journal and its write-ahead log, as far as they are there."""
    return [file for file in (path, path.with_name(path.name + "-wal")) if file.exists()]

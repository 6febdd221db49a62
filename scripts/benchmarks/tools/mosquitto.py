"""A Mosquitto in a process of its own, with its files in a folder."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SEARCHED = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin"
READY = 20.0
"""Seconds that it may take to accept connections."""


def find_mosquitto() -> str | None:
    """Where it is; an ordinary user's PATH may lack /usr/sbin."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path=SEARCHED)


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """Its port at the loopback address while the block runs; RuntimeError if there is none."""
    command = find_mosquitto()
    if command is None:
        raise RuntimeError("there is no Mosquitto; apt-get install mosquitto")
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    configuration = folder / "mosquitto.conf"
    # A queue without a limit: what the node has not taken stays at the broker.
    configuration.write_text(
        f"listener {port} 127.0.0.1\nuser {getpass.getuser()}\nallow_anonymous true\nmax_queued_messages 0\n"
    )
    log = folder / "mosquitto.log"
    with log.open("wb") as output:
        process = subprocess.Popen([command, "-c", str(configuration)], stdout=output, stderr=output)
    try:
        _await(process, port, log)
        yield port
    finally:
        process.terminate()
        process.wait()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + READY
    while process.poll() is None and time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.02)
    raise RuntimeError(f"Mosquitto was not ready; it said: {log.read_text('utf-8', 'replace')[-500:]}")

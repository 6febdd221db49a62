"""`hpwsn` as the shell blocks of the documents find it: the command itself, at home among other commands.

A reader keeps a second terminal for what runs on. Here `listen` goes to the background once it listens, and
its process is noted in `listeners` for the test to collect; `serve` or `admin` in the foreground becomes
ready, says so, and gets SIGTERM. In the background (standard input is /dev/null) it is left alone, and noted
in `nodes`.
A node takes a free port unless the block names one.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SERVERS = ("serve", "admin")


def main(module: str, arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    command = [sys.executable, "-m", module, *arguments]
    kind = arguments[0] if arguments and "--help" not in arguments else ""
    if kind == "listen":
        return listen(command)
    if kind in SERVERS and "--port" not in arguments:
        command += ["--port", "0"]
    if kind in SERVERS and not in_background():
        return serve(command)
    if kind in SERVERS:
        note("nodes", os.getpid())
    return os.execv(sys.executable, command)


def in_background() -> bool:
    """Bash gives /dev/null to what it starts with `&`, and the test gives a pipe to the block."""
    return os.path.realpath("/proc/self/fd/0") == os.devnull


def note(file: str, pid: int) -> None:
    """Leave a process to the test."""
    with Path(os.environ["DOCUMENT_NOTES"], file).open("a") as notes:
        notes.write(f"{pid}\n")


def listen(command: list[str]) -> int:
    """Start a listener, and come back when it listens; one that cannot is an error."""
    output = Path(os.environ["DOCUMENT_NOTES"], f"listener-{os.getpid()}.txt")
    with output.open("wb") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    until = time.monotonic() + float(os.environ["DOCUMENT_PATIENCE"])
    while time.monotonic() < until and child.poll() is None:
        if "listening to" in output.read_text():
            note("listeners", child.pid)
            output.rename(output.with_name(f"listener-{child.pid}.txt"))
            return 0
        time.sleep(0.02)
    child.kill()
    sys.stderr.write(output.read_text())
    return child.wait()


def serve(command: list[str]) -> int:
    """Start a node, wait for its ready line, and stop it as an operator does."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            sys.stdout.write(line)
            if line.startswith("ready "):
                child.send_signal(signal.SIGTERM)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

"""Docker, or Podman with docker-compose, whichever this machine has; all of it by their command lines.

Podman runs health checks by timers of systemd, which a machine may not have. So a health check is run here,
by the command that the container's image or compose file gives it.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.documents import ROOT

FOLDER = ROOT / "scripts" / "deploy" / "docker"
PATIENCE = 180.0


class Failed(Exception):
    """Something is not as the documents say."""


def wait_for(what: str, condition: Callable[[], object], patience: float = PATIENCE) -> Any:
    """The first true answer; a failed request or command is no answer yet."""
    until = time.monotonic() + patience
    problem: object = "no"
    while time.monotonic() < until:
        try:
            if answer := condition():
                return answer
        except (OSError, Failed) as error:
            problem = error
        time.sleep(0.5)
    raise Failed(f"{what}: not within {patience:.0f} s: {problem}")


def run(*command: str, stdin: str | None = None, env: dict[str, str] | None = None) -> str:
    """The output of a command that must succeed."""
    ended = subprocess.run(
        command, input=stdin, capture_output=True, text=True, env={**os.environ, **(env or {})}
    )
    if ended.returncode:
        last = "\n".join((ended.stdout + ended.stderr).splitlines()[-40:])
        raise Failed(f"{' '.join(command)} ended with {ended.returncode}:\n{last}")
    return ended.stdout


class Engine:
    """The container engine of this machine."""

    def __init__(self) -> None:
        self.name = self._find()
        self.environment: dict[str, str] = {}
        self._compose = ["docker", "compose"]
        if self.name == "podman":
            self._compose = ["docker-compose"]
            self._serve_podman()

    @staticmethod
    def _find() -> str:
        tried = subprocess.run(["docker", "info"], capture_output=True) if shutil.which("docker") else None
        if tried and tried.returncode == 0:
            return "docker"
        if shutil.which("podman") and shutil.which("docker-compose"):
            return "podman"
        raise Failed(
            "needs a running Docker with Compose, or the packages podman and docker-compose, and root"
        )

    def _serve_podman(self) -> None:
        """Give docker-compose the API that it speaks to; Podman builds without BuildKit."""
        folder = tempfile.mkdtemp()
        socket = Path(folder, "podman.sock")
        service = subprocess.Popen(["podman", "system", "service", "--time=0", f"unix://{socket}"])
        atexit.register(shutil.rmtree, folder)
        atexit.register(service.wait)
        atexit.register(service.terminate)
        self.environment = {"DOCKER_HOST": f"unix://{socket}", "DOCKER_BUILDKIT": "0"}
        wait_for("the service of Podman", socket.exists, 30)

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """A command of the engine itself."""
        return run(self.name, *arguments, stdin=stdin)

    def compose(self, file: str, *arguments: str) -> str:
        """A command of Compose with one of our files."""
        return run(*self._compose, "--file", str(FOLDER / file), *arguments, env=self.environment)

    def inspect(self, container: str) -> dict[str, Any]:
        """What the engine knows of a container."""
        found: dict[str, Any] = json.loads(self("inspect", container))[0]
        return found

    def is_healthy(self, container: str) -> bool:
        """Whether the container runs and its health check, which it must have, succeeds now."""
        state = self.inspect(container)
        if not state["State"]["Running"]:
            raise Failed(f"{container} has ended:\n{self('logs', '--tail', '20', container)}")
        kind, *command = state["Config"]["Healthcheck"]["Test"]
        if kind != "CMD":
            raise Failed(f"the health check of {container} is {kind}, not CMD")
        self("exec", container, *command)
        return True

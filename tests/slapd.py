"""A real OpenLDAP server as `scripts/slapd` starts it, and the tools that an admin changes it with."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from hpwsn.topics.directory.directory import Access, Directory
from hpwsn.topics.opening import open_directory
from tests.harness import ROOT
from tests.needs import need
from tests.patience import PATIENCE

ADMIN = "cn=admin,dc=hpwsn"
BASE = "ou=topics,dc=hpwsn"


class Slapd:
    """The server in a folder of its own; after a kill it starts again on the same port, with what it had."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.arguments = arguments
        self.url = ""
        self.secure_url = ""
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Start it and wait for its ready line; skips where this machine has no OpenLDAP."""
        need("slapd")
        if "--tls" in self.arguments:
            need("openssl")
        command = [str(ROOT / "scripts" / "slapd"), "--data", str(self.folder), "--port", str(self.port)]
        self._process = subprocess.Popen([*command, *self.arguments], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("tls "):
                self.secure_url = line.split()[1]
            if line.startswith("ready "):
                self.url = line.removeprefix("ready ").strip()
                self.port = int(self.url.split(":")[2].split("/")[0])
                return self
        raise AssertionError("slapd ended before it was ready")

    @property
    def server(self) -> str:
        """The server's address without the base."""
        return self.url.removesuffix(f"/{BASE}")

    @property
    def access(self) -> Access:
        """How the admin reaches it."""
        return Access(bind_dn=ADMIN, password_file=self.password_file)

    @property
    def directory(self) -> Directory:
        """The admin's view of the topics."""
        return open_directory(self.url, self.access)

    @property
    def password_file(self) -> str:
        """The file with the admin's password."""
        return str(self.folder / "password")

    def add(self, ldif: str) -> None:
        """ldapadd of these entries."""
        self._tool("ldapadd", stdin=ldif)

    def modify(self, ldif: str) -> None:
        """ldapmodify by these change records."""
        self._tool("ldapmodify", stdin=ldif)

    def delete(self, *names: str, recursive: bool = False) -> None:
        """ldapdelete of these entries."""
        self._tool("ldapdelete", *(["-r"] if recursive else []), *names)

    def rename(self, name: str, rdn: str, above: str | None = None) -> None:
        """ldapmodrdn of an entry with all below it."""
        self._tool("ldapmodrdn", "-r", *(["-s", above] if above else []), name, rdn)

    def _tool(self, tool: str, *arguments: str, stdin: str = "") -> None:
        bind = ["-x", "-H", self.server, "-D", ADMIN, "-y", self.password_file]
        ended = subprocess.run(
            [tool, *bind, *arguments], input=stdin, capture_output=True, text=True, timeout=PATIENCE
        )
        assert ended.returncode == 0, ended.stderr

    def kill(self) -> None:
        """kill -9 of the server itself."""
        os.kill(int((self.folder / "slapd.pid").read_text()), signal.SIGKILL)
        self._reap()

    def close(self) -> None:
        """Leave nothing running."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._reap()

    def _reap(self) -> None:
        assert self._process is not None
        self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def topic(name: str, *above: str, **attributes: str) -> str:
    """The LDIF of one topic's entry, below the ones named from the nearest up."""
    dn = ",".join([f"cn={each}" for each in (name, *above)] + [BASE])
    lines = [f"dn: {dn}", "objectClass: hpwsnTopic", f"cn: {name}"]
    lines += [f"{attribute}: {value}" for attribute, value in attributes.items()]
    return "\n".join(lines) + "\n\n"

"""The documented installation under a real systemd: every command as printed, in a container that boots."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deployment.composed import expect
from tests.deployment.engine import Engine, Failed, run, wait_for
from tests.documents import ROOT
from tests.systemd_installation import ACTIVEMQ, ADMIN, CLUSTER, split_uses

NAME = "hpwsn-deploy-test"
MACHINE = """\
FROM debian:13-slim
RUN mkdir --parents /usr/share/man/man1 \\
    && apt-get update \\
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends dbus systemd-sysv \\
    && rm -f /usr/sbin/policy-rc.d
# The documents say apt-get install, and leave the question to the reader.
RUN printf 'APT::Get::Assume-Yes "1";\\nAPT::Install-Recommends "0";\\n' >/etc/apt/apt.conf.d/unattended
ENV DEBIAN_FRONTEND=noninteractive
STOPSIGNAL SIGRTMIN+3
CMD ["/sbin/init"]
"""
ENABLED_BACKBONE = r"sed --in-place '/^# \[backbone\]/,/^$/ s/^# //' /etc/hpwsn/hpwsn.toml"


class Machine:
    """A booted system in a container."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def sh(self, script: str) -> str:
        """The output of a script that root runs there."""
        return self.engine("exec", NAME, "bash", "-euo", "pipefail", "-c", script)

    def follow(self, document: Path) -> None:
        """Run the commands of a document as they are printed, in one shell, then those that use a service."""
        lines, uses = split_uses(document)
        self.sh("\n".join(lines).replace("URL-OF-THIS-REPOSITORY", "/root/hpwsn.bundle"))
        for line in uses:
            wait_for(line, lambda line=line: self.sh(f"{line} && echo done"), 60)

    def properties(self, unit: str) -> dict[str, str]:
        """What systemd says of a unit."""
        lines = self.sh(f"systemctl show {unit}").splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)


@contextmanager
def machine(engine: Engine) -> Iterator[Machine]:
    """A machine with systemd and this checkout's commits as a bundle, until the end of the block."""
    engine("build", "--tag", NAME, "-", stdin=MACHINE)
    engine("rm", "--force", "--volumes", NAME)
    options = ["--systemd=always"] if engine.name == "podman" else ["--cgroupns=host"]
    shared = [] if engine.name == "podman" else ["--volume", "/sys/fs/cgroup:/sys/fs/cgroup"]
    engine("run", "--detach", "--privileged", *options, *shared, "--name", NAME, NAME)
    try:
        with tempfile.TemporaryDirectory() as folder:
            bundle = f"{folder}/hpwsn.bundle"
            run("git", "-C", str(ROOT), "bundle", "create", "--quiet", bundle, "HEAD")
            engine("cp", bundle, f"{NAME}:/root/hpwsn.bundle")
        # A container has no kernel modules to load, for which the system is degraded.
        booted = "{ systemctl is-system-running || true; } | grep --extended-regexp 'running|degraded'"
        one = Machine(engine)
        wait_for("systemd is up", lambda: one.sh(booted))
        yield one
    finally:
        engine("rm", "--force", "--volumes", NAME)


def check_unit(machine: Machine, unit: str, user: str) -> None:
    """It runs as its user, without capabilities, and systemd-analyze says nothing against it."""
    wait_for(f"{unit} is active", lambda: machine.sh(f"systemctl is-active {unit}").strip() == "active")
    shown = machine.properties(unit)
    process = machine.sh(f"ps --no-headers --format user:20 --pid {shown['MainPID']}").strip()
    expect(process, user, f"the user of {unit}")
    capabilities = machine.sh(f"grep CapEff /proc/{shown['MainPID']}/status").split()[1]
    expect(int(capabilities, 16), 0, f"the capabilities of {unit}")
    expect(shown["NRestarts"], "0", f"restarts of {unit}")
    expect(
        machine.sh(f"systemd-analyze verify --man=no {unit}.service 2>&1"),
        "",
        f"systemd-analyze verify {unit}",
    )


def check_systemd(engine: Engine) -> None:
    """The node by docs/admin.md, then ActiveMQ and the admin node by their documents; the node uses both."""
    with machine(engine) as one:
        one.sh("apt-get update --quiet=2 && apt-get install --quiet=2 procps")
        one.follow(ADMIN)
        check_unit(one, "hpwsn", "hpwsn")
        log = one.sh("journalctl --unit hpwsn --no-pager")
        if re.search(r"WARNING|ERROR|Traceback", log):
            raise Failed(f"the log of the node:\n{log}")
        publish = "/opt/hpwsn/bin/hpwsn publish test:second more"
        one.sh(publish)
        one.follow(CLUSTER)
        check_unit(one, "hpwsn-admin", "hpwsn")
        one.follow(ACTIVEMQ)
        check_unit(one, "hpwsn-activemq", "activemq")
        one.sh(f"{ENABLED_BACKBONE} && systemctl restart hpwsn")
        check_unit(one, "hpwsn", "hpwsn")
        ready = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8080/readyz').read())"
        wait_for("the node has its backbone", lambda: one.sh(f'/opt/hpwsn/bin/python -c "{ready}"'))
        one.sh(publish)
        print(one.sh("systemd-analyze security --no-pager hpwsn").splitlines()[-1], flush=True)
        one.sh("systemctl stop hpwsn hpwsn-admin hpwsn-activemq")
        for unit in ("hpwsn", "hpwsn-admin", "hpwsn-activemq"):
            expect(one.properties(unit)["Result"], "success", f"the end of {unit}")

"""What tests need beside Python and its packages: each thing itself is looked for, not a package.

A test that needs something calls `need`, or its fixture does. Where the thing is missing the test is skipped,
which CI counts as a failure; the reason names the thing and Debian's packages, and tests/skipped_needs.py
lists it.
"""

from __future__ import annotations

import functools
import glob
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ACTIVEMQ_JAR = Path("/usr/share/activemq/bin/activemq.jar")
SLAPD_SCHEMA = Path("/etc/ldap/schema/core.schema")
MQTT_JAR = Path("/usr/share/java/mqtt-client.jar")
AMQP_JARS = ("activemq-amqp", "proton-j")
KAFKA_JARS = ("server", "spark")
FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"
AXE = ROOT / "scripts" / "page-tools" / "node_modules" / "axe-core" / "axe.min.js"
OLDEST_JAVA = 17


def _commands(*names: str) -> bool:
    """Whether all are in PATH, or in /usr/sbin, which an ordinary user's PATH may lack."""
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    return all(shutil.which(name, path=path) for name in names)


def _java() -> bool:
    try:
        said = subprocess.run(("java", "-version"), capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return False
    found = re.search(r'version "(\d+)', said)
    return found is not None and int(found[1]) >= OLDEST_JAVA


def _slapd() -> bool:
    """Whether the server is there as Debian lays it out, which scripts/slapd relies on."""
    return _commands("slapd", "ldapadd", "ldapmodrdn") and SLAPD_SCHEMA.exists()


def _activemq() -> bool:
    return ACTIVEMQ_JAR.exists() and MQTT_JAR.exists() and _java()


def _amqp() -> bool:
    """Whether the jars of ActiveMQ's connector have been fetched; no test waits for Maven."""
    return _activemq() and all(any((ROOT / ".jars").glob(f"{name}-*.jar")) for name in AMQP_JARS)


def _kafka() -> bool:
    """Whether Kafka's jars have been fetched; no test waits for Maven."""
    return _java() and all(any((ROOT / ".jars" / "kafka" / part).glob("*.jar")) for part in KAFKA_JARS)


NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "slapd": (_slapd, "apt-get install slapd ldap-utils"),
    "ActiveMQ": (_activemq, "apt-get install activemq libmqtt-client-java default-jre-headless"),
    "ActiveMQ with AMQP": (
        _amqp,
        "apt-get install activemq libmqtt-client-java default-jre-headless maven,"
        " then scripts/test fetches its jars",
    ),
    "Kafka": (
        _kafka,
        "apt-get install default-jre-headless maven, then scripts/test --interop fetches its jars",
    ),
    f"Java {OLDEST_JAVA} or later": (_java, "apt-get install default-jre-headless"),
    "Mosquitto": (lambda: _commands("mosquitto", "mosquitto_passwd"), "apt-get install mosquitto"),
    "libfaketime": (lambda: bool(glob.glob(FAKETIME)), "apt-get install faketime"),  # noqa: PTH207
    "Chromium": (lambda: _commands("chromium"), "apt-get install chromium"),
    "axe-core": (AXE.exists, "apt-get install npm, then scripts/test fetches it"),
    "Prometheus": (lambda: _commands("prometheus", "promtool"), "apt-get install prometheus"),
    "openssl": (lambda: _commands("openssl"), "apt-get install openssl"),
    "curl": (lambda: _commands("curl"), "apt-get install curl"),
    "systemd-analyze": (lambda: _commands("systemd-analyze"), "apt-get install systemd"),
}
"""Whether it is there, and what to do if not."""


@functools.cache
def has(name: str) -> bool:
    """Whether this machine has one of NEEDS."""
    return NEEDS[name][0]()


def need(name: str) -> None:
    """Skip the test where this machine lacks one of NEEDS."""
    if not has(name):
        pytest.skip(f"needs {name}: {NEEDS[name][1]}")

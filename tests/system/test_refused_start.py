"""What `hpwsn serve` does not start with: one line and status 1, and `hpwsn check-config` says the same.

Each case names a setting that is well-formed and cannot be used on this machine. A setting that the node may
refuse must have a case here: by the errors in the source, and by the settings that name a file.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hpwsn.node.preflight import unusable_settings
from hpwsn.settings import SETTINGS, Config
from tests.certificates import certificate
from tests.harness import ROOT, NodeProcess, environment, hpwsn
from tests.patience import PATIENCE
from tests.permissions import obeying, with_read_only

SOURCES = [*(ROOT / "hpwsn").rglob("*.py")]
NOT_OF_A_NODE = {"admin.dir", "admin.host"}
SERVES_NOTHING = {"server.public_url", "cluster.url", "cluster.admin", "routing.originals", "streams.url"}
"""Addresses of others: whoever is away there may be back in a moment."""


@dataclass(frozen=True)
class Case:
    """A setting, its value in a folder, what the line must say, and the settings that it needs beside it."""

    key: str
    make: Callable[[Path], object]
    words: str
    beside: tuple[str, ...] = ()
    prefix: Callable[[Path], tuple[str, ...]] = lambda _: ()

    def arguments(self, folder: Path) -> list[str]:
        value = self.make(folder)
        data = [] if self.key == "data.dir" else [f"data.dir={folder / 'data'}"]
        given = [*data, *(text.format(folder=folder) for text in self.beside), f"{self.key}={value}"]
        return [part for text in ("server.port=0", *given) for part in ("--set", text)]


AGENT = ("streams.agent=true",)


def without_spark(folder: Path) -> tuple[str, ...]:
    """A Python that does not find PySpark."""
    return without("pyspark", folder)


def without_opentelemetry(folder: Path) -> tuple[str, ...]:
    """A Python that does not find OpenTelemetry."""
    return without("opentelemetry", folder)


def without_paho(folder: Path) -> tuple[str, ...]:
    """A Python that does not find paho-mqtt."""
    return without("paho", folder)


def without(package: str, folder: Path) -> tuple[str, ...]:
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.modules['{package}'] = None\n")
    return ("env", f"PYTHONPATH={folder}{os.pathsep}{environment()['PYTHONPATH']}")


def missing(folder: Path) -> Path:
    return folder / "missing"


def empty(folder: Path) -> Path:
    return written(folder, "")


def written(folder: Path, text: str) -> Path:
    file = folder / "written"
    file.write_text(text)
    return file


def unreadable(folder: Path) -> Path:
    file = written(folder, "name:password")
    file.chmod(0)
    return file


def words_in(folder: Path) -> Path:
    return written(folder, "words")


def missing_beside_a_certificate(folder: Path) -> Path:
    certificate(folder, "node")
    return missing(folder)


def key_of_another(folder: Path) -> Path:
    certificate(folder, "node")
    return certificate(folder, "other")[1]


def read_only_directory(folder: Path) -> Path:
    (folder / "closed").mkdir(mode=0o500)
    return folder / "closed"


def below_a_read_only_directory(folder: Path) -> Path:
    return read_only_directory(folder) / "data"


def directory_of(journal: Callable[[Path], object]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        data = folder / "data"
        data.mkdir()
        journal(data / "journal.db")
        return data

    return make


def another_database(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE mine (a)")
    db.close()


def later_version(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 1000")
    db.close()


def closed_file(file: Path) -> None:
    file.write_bytes(b"")
    file.chmod(0o400)


def obey(_: Path) -> tuple[str, ...]:
    return obeying() or by_itself(_)


def by_itself(_: Path) -> tuple[str, ...]:
    """In a process of its own, without the warnings that importing stomp.py makes in a copy of another."""
    return ("env",)


def mount_read_only(folder: Path) -> tuple[str, ...]:
    return with_read_only(folder / "data")


IN_CLUSTER = ("cluster.admin=http://127.0.0.1:9",)
SECRET = (*IN_CLUSTER, "cluster.secret=hush")
STOMP = ("backbone.url=stomp://user@127.0.0.1",)
BOUND = ("topics.url=ldap://127.0.0.1:9/ou=topics", "topics.bind_dn=cn=admin")
LDAP = ("topics.url=ldap://127.0.0.1:9/ou=topics",)
EDITED = (*LDAP, "topics.edit_bind_dn=cn=editor")
CERTIFICATE = ("server.tls_certificate={folder}/node.pem",)
MQTT = ("sensors.mqtt_url=mqtt://127.0.0.1",)
NOT_READ = "cannot be read: No such file or directory"
DENIED = "Permission denied"

CASES = [
    Case("server.host", lambda _: "192.0.2.1", "is not an address to listen on (Cannot assign"),
    Case("server.host", lambda _: "a..b", "is not an address to listen on (this is not a valid host name"),
    Case("server.tls_certificate", missing, NOT_READ),
    Case("server.tls_certificate", unreadable, DENIED, prefix=obey),
    Case("server.tls_certificate", words_in, "both must be PEM"),
    Case("server.tls_key", key_of_another, "the certificate's own", CERTIFICATE),
    Case(
        "server.tls_key",
        lambda folder: certificate(folder, "node") and missing(folder),
        NOT_READ,
        CERTIFICATE,
    ),
    Case(
        "server.tls_client_ca",
        lambda folder: certificate(folder, "node") and words_in(folder),
        "has no certificates",
        (*CERTIFICATE, "server.tls_key={folder}/node-key.pem"),
    ),
    Case("data.dir", words_in, "it is not a directory"),
    Case("data.dir", lambda folder: words_in(folder) / "data", "written is not a directory"),
    Case("data.dir", lambda folder: folder / ("n" * 300), "File name too long"),
    Case("data.dir", lambda _: "/proc/data", "/proc is not writable"),
    Case("data.dir", read_only_directory, f"it is not writable ({DENIED})", prefix=obey),
    Case("data.dir", below_a_read_only_directory, f"closed is not writable ({DENIED})", prefix=obey),
    Case("data.dir", directory_of(lambda _: None), "(Read-only file system)", prefix=mount_read_only),
    Case("data.dir", directory_of(closed_file), f"journal.db is not writable ({DENIED})", prefix=obey),
    Case("data.dir", directory_of(Path.mkdir), "journal.db is not a file"),
    Case("data.dir", directory_of(lambda file: file.write_text("words " * 1000)), "file is not a database"),
    Case("data.dir", directory_of(another_database), "it is the database of another program"),
    Case("data.dir", directory_of(later_version), "has journal version 1000"),
    Case("topics.url", lambda folder: folder / "missing.toml", "there is no such file"),
    Case("topics.url", words_in, "must end in .toml"),
    Case("topics.url", lambda _: "gopher://there/topics", "unknown scheme"),
    Case("topics.url", lambda _: "ldap://127.0.0.1:9", "write ldap://host:port/base"),
    Case("topics.password_file", missing, NOT_READ, BOUND),
    Case("topics.password_file", unreadable, DENIED, BOUND, obey),
    Case("topics.password_file", empty, "is empty", BOUND),
    Case("topics.edit_password_file", missing, NOT_READ, EDITED),
    Case("topics.edit_password_file", unreadable, DENIED, EDITED, obey),
    Case("topics.edit_password_file", empty, "is empty", EDITED),
    Case("topics.edit_bind_dn", lambda _: "cn=editor", "set topics.edit_password_file", LDAP),
    Case("topics.ca_file", missing, "there is no such file", ("topics.url=ldaps://127.0.0.1:9/ou=topics",)),
    Case("delivery.ca_file", missing, "cannot be used: No such file"),
    Case("delivery.ca_file", words_in, "cannot be used: NO_CERTIFICATE_OR_CRL_FOUND"),
    Case("onvif.users_file", missing, NOT_READ),
    Case("onvif.users_file", unreadable, DENIED, prefix=obey),
    Case("onvif.users_file", empty, "has no users"),
    Case("onvif.users_file", words_in, "has an invalid line 1"),
    Case("backbone.url", lambda _: "stomp://host:port", "cannot be used"),
    Case("backbone.password_file", missing, NOT_READ, STOMP, by_itself),
    Case("backbone.password_file", unreadable, DENIED, STOMP, obey),
    Case("backbone.password_file", empty, "is empty", STOMP, by_itself),
    Case("cluster.secret_file", missing, NOT_READ, IN_CLUSTER),
    Case("cluster.secret_file", unreadable, DENIED, IN_CLUSTER, obey),
    Case("cluster.secret_file", empty, "is empty", IN_CLUSTER),
    Case("cluster.secret_file", lambda folder: written(folder, "x" * 5000), "more than 4096", IN_CLUSTER),
    Case("cluster.ca_file", missing, "contains no certificates: No such file", SECRET),
    Case("cluster.ca_file", words_in, "contains no certificates: NO_CERTIFICATE", SECRET),
    Case("node.name", lambda _: "a/b", "is not a valid name", SECRET),
    Case("node.cluster", lambda _: "a/b", "is not a valid name", SECRET),
    Case("routing.host", lambda _: "192.0.2.1", "is not an address to listen on", SECRET),
    Case("routing.public", lambda _: "nowhere", "must be host:port", SECRET),
    Case("streams.agent", lambda _: "true", "requires Spark", prefix=without_spark),
    Case(
        "tracing.enabled",
        lambda _: "true",
        "requires OpenTelemetry; pip install 'hpwsn[tracing]'",
        prefix=without_opentelemetry,
    ),
    Case("tracing.otlp_url", lambda _: "", "must be the URL of a collector", ("tracing.enabled=true",)),
    Case("sensors.file", missing, NOT_READ),
    Case("sensors.file", words_in, "it is not TOML"),
    Case("sensors.templates", missing, NOT_READ),
    Case("sensors.templates", words_in, "it is not TOML"),
    Case("sensors.ldap_base", lambda _: "ou=sensors", "is no LDAP server"),
    Case("sensors.mqtt_url", lambda _: "mqtt://host:port", "has a port that is not a number"),
    Case("sensors.mqtt_url", lambda _: "mqtt://127.0.0.1", "requires paho-mqtt", prefix=without_paho),
    Case("sensors.mqtt_topics", lambda _: "#/a", "not the whole last level", MQTT),
    Case("sensors.mqtt_commands", lambda _: "sensors/wanted", "must name one topic of each sensor", MQTT),
    Case(
        "sensors.mqtt_password_file", missing, "is not a file that exists", (*MQTT, "sensors.mqtt_user=node")
    ),
    Case(
        "sensors.mqtt_ca_file", missing, "is not a file that exists", ("sensors.mqtt_url=mqtts://127.0.0.1",)
    ),
    Case("dtn.key_file", missing, NOT_READ),
    Case("dtn.key_file", unreadable, DENIED, prefix=obey),
    Case("dtn.key_file", words_in, "has 5 bytes"),
    Case("streams.agent_folder", lambda _: "here", "must be an absolute path", AGENT),
    Case("streams.archive", words_in, "is for the workers of a cluster", AGENT),
    Case("streams.archive", missing, "cannot be read: No such file", (*AGENT, "streams.master=spark://a:1")),
]


def run(command: str, *arguments: str, prefix: Sequence[str] = (), **variables: str) -> tuple[int, str]:
    """The status of a command and what it wrote to standard error; a node that starts is ended."""
    if not prefix and not variables:
        ended = hpwsn(command, *arguments)
        return ended.returncode, ended.stderr
    words = [*prefix, sys.executable, "-m", "hpwsn", command, *arguments]
    given = {**environment(), "PYTHONWARNINGS": "ignore", **variables}
    with subprocess.Popen(
        words, env=given, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline().startswith("ready "):
            process.terminate()
        errors = process.stderr.read()
        return process.wait(PATIENCE), errors


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key}-{case.words.replace(' ', '-')}")
def test_serve_and_check_config_refuse_it_in_the_same_line(case: Case, tmp_path: Path) -> None:
    arguments = case.arguments(tmp_path)
    served = run("serve", *arguments, prefix=case.prefix(tmp_path))
    checked = run("check-config", *arguments, prefix=case.prefix(tmp_path))
    status, errors = served
    assert checked == served
    assert status == 1
    assert errors.startswith("hpwsn: error: flag --set: ")
    assert errors.count("\n") == 1
    assert case.key.partition(".")[0] in errors
    assert case.words in errors


def test_what_is_refused_at_several_settings_is_told_together(tmp_path: Path) -> None:
    given = ("server.tls_certificate", "onvif.users_file", "delivery.ca_file")
    arguments = [part for key in given for part in ("--set", f"{key}={missing(tmp_path)}")]
    command = [sys.executable, "-m", "hpwsn", "check-config", "--json", *arguments]
    ended = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True)
    answer = json.loads(ended.stdout)
    assert (ended.returncode, answer["ok"]) == (1, False)
    assert {problem["key"] for problem in answer["problems"]} == set(given)
    assert {problem["source"] for problem in answer["problems"]} == {"flag --set"}


def keys_of_errors() -> set[str]:
    """The settings that the source refuses with a SettingError of their name."""
    calls = (
        node
        for source in SOURCES
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "SettingError"
    )
    first = (call.args[0] for call in calls)
    return {str(one.value) for one in first if isinstance(one, ast.Constant)}


def keys_that_name_something() -> set[str]:
    """The settings that name a file, a directory or an address, by their names."""
    names = {"dir", "url", "public_url", "host", "public", "tls_certificate", "tls_key", "tls_client_ca"}
    found = SETTINGS.items()
    return {key for key, setting in found if setting.name in names or setting.name.endswith("_file")}


def test_every_setting_that_a_node_may_refuse_has_a_case() -> None:
    wanted = (keys_of_errors() | keys_that_name_something()) - NOT_OF_A_NODE - SERVES_NOTHING
    assert wanted - {case.key for case in CASES} == {"cluster.secret"}


def test_a_secret_of_blanks_is_refused_as_a_missing_one_is() -> None:
    arguments = ("--port=0", "--admin=http://127.0.0.1:9")
    served = run("serve", *arguments, HPWSN_CLUSTER_SECRET=" ")
    assert run("check-config", *arguments, HPWSN_CLUSTER_SECRET=" ") == served
    assert served[0] == 1
    assert 'environment HPWSN_CLUSTER_SECRET: cluster.secret = "***" is blank' in served[1]


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("--topics=ldap://127.0.0.1:9/ou=topics", "ldap", ".[ldap]"),
        ("--backbone=stomp://a", "stomp", ".[activemq]"),
    ],
)
def test_an_extra_that_is_not_installed_is_told_with_its_name(
    url: str, module: str, extra: str, tmp_path: Path
) -> None:
    # A module of that name which fails as a missing one does, before the installed one.
    (tmp_path / f"{module}.py").write_text(f"raise ModuleNotFoundError('none', name={module!r})\n")
    path = os.pathsep.join((str(tmp_path), environment()["PYTHONPATH"]))
    arguments = (url, "--port=0", f"--data={tmp_path / 'data'}")
    served = run("serve", *arguments, PYTHONPATH=path)
    assert run("check-config", *arguments, PYTHONPATH=path) == served
    assert served[0] == 1
    assert f"pip install ./client '{extra}'" in served[1]
    assert served[1].count("\n") == 1


def test_a_data_directory_in_use_is_told_by_serve_alone(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        arguments = ("--data", str(node.data), "--port", "0")
        status, errors = run("serve", *arguments)
        assert (status, errors.count("\n")) == (1, 1)
        assert errors.startswith(
            f"hpwsn: error: the data directory {node.data} is in use by process {node.pid}"
        )
        assert run("check-config", *arguments) == (0, "")


def test_a_journal_that_another_program_keeps_locked_is_one_line(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        assert node.terminate() == 0
    with sqlite3.connect(node.data / "journal.db", isolation_level=None) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        status, errors = run("serve", "--data", str(node.data), "--port", "0")
    holder.close()
    assert (status, errors.count("\n")) == (1, 1)
    assert "hpwsn: error: another process has locked" in errors


def test_a_port_in_use_is_told_by_serve_alone(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        arguments = ("--data", str(tmp_path / "other"), "--port", str(node.port))
        status, errors = run("serve", *arguments)
        assert status == 1
        assert "Traceback" not in errors
        assert f"hpwsn: error: cannot listen on 127.0.0.1:{node.port}: Address already in use" in errors
        assert run("check-config", *arguments) == (0, "")


def test_a_password_file_that_is_a_pipe_is_left_for_the_node_to_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as pipe:
        pipe.write("user:password\n")
        pipe.flush()
        settings = replace(Config(), onvif=replace(Config().onvif, users_file=f"/dev/fd/{read}"))
        assert unusable_settings(settings) == []
        assert os.read(read, 100) == b"user:password\n"


def test_checking_makes_no_data_directory_and_leaves_nothing_in_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert run("check-config", "--data", str(data)) == (0, "")
    assert list(tmp_path.iterdir()) == []
    with NodeProcess(data) as node:
        assert node.terminate() == 0
    before = sorted(data.iterdir())
    assert run("check-config", "--data", str(data)) == (0, "")
    assert sorted(data.iterdir()) == before
    shutil.rmtree(data)


@pytest.mark.parametrize("command", ["serve", "admin", "check-config"])
def test_a_variable_with_a_typing_error_is_refused_with_the_one_that_is_meant(
    command: str, tmp_path: Path
) -> None:
    variables = {"HPWSN_SERVER_PRT": "9000", "HPWSN_CLUSTER_SECRET": "hush", "HPWSN_TOKEN": "t"}
    status, errors = run(command, "--data", str(tmp_path / "data"), **variables)
    assert status == 1
    wanted = "environment HPWSN_SERVER_PRT is not a variable of HPwsn; did you mean HPWSN_SERVER_PORT?"
    assert errors == f"hpwsn: error: {wanted}\n"


@pytest.mark.parametrize("directory", [words_in, read_only_directory])
def test_an_admin_node_says_in_one_line_that_its_directory_cannot_be_used(
    directory: Callable[[Path], Path], tmp_path: Path
) -> None:
    where = directory(tmp_path)
    status, errors = run("admin", "--data", str(where), prefix=obeying(), HPWSN_CLUSTER_SECRET="hush")
    assert (status, errors.count("\n")) == (1, 1)
    assert errors.startswith(f"hpwsn: error: the data directory {where} cannot be used: ")


def test_a_start_that_fails_after_the_port_is_bound_is_told_in_one_line(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        arguments = (
            "--port=0",
            f"--data={tmp_path}",
            "--admin=http://127.0.0.1:9",
            f"--set=routing.port={port}",
        )
        status, errors = run("serve", *arguments, HPWSN_CLUSTER_SECRET="a secret of this test")
    assert status == 1
    assert errors.startswith("hpwsn: error: cannot")
    assert errors.count("\n") == 1

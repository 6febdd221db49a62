"""The images and compose files agree with the checkout, with each other and with the node.

No Docker is needed here. `scripts/deploy-test` builds the images and starts each compose file for real.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ldap
import pytest

from hpwsn.configuration.sources import load_config
from tests.container_files import COMPOSE_FILES, DOCKERFILES, Ignored, Image, load_compose
from tests.harness import ROOT, NodeProcess, quiet_port
from tests.needs import need
from tests.patience import PATIENCE, until

IMAGES = {path.name: Image(path) for path in DOCKERFILES}
NODE = IMAGES["node.Dockerfile"]
IGNORED = Ignored(ROOT / ".dockerignore")
SERVICES = [
    pytest.param(path, name, id=f"{path.stem}-{name}")
    for path in COMPOSE_FILES
    for name in load_compose(path)["services"]
]
BUILD_TOOLS = re.compile(
    r"\b(gcc|g\+\+|make|build-essential|\S+-dev|python3-venv|git|default-j\w+|openjdk\S*)\b"
)
SECRET_VARIABLE = re.compile(r"PASSWORD|SECRET|TOKEN")


def files_below(source: str) -> list[str]:
    """The files that a COPY of that source takes, as names from the root of the checkout."""
    start = ROOT / source
    if start.is_file():
        return [source]
    skipped = {".git", ".venv", "node_modules", "__pycache__"}
    found = []
    for folder, folders, names in os.walk(start):
        folders[:] = [name for name in folders if name not in skipped]
        found += [str((Path(folder) / name).relative_to(ROOT)) for name in names]
    return found


@pytest.fixture(params=IMAGES.values(), ids=IMAGES.keys())
def image(request: pytest.FixtureRequest) -> Image:
    found: Image = request.param
    return found


class TestEachImage:
    def test_copies_only_what_is_in_the_checkout_and_in_the_build_context(self, image: Image) -> None:
        for source in image.sources:
            assert (ROOT / source).exists(), f"there is no {source}"
            assert any(name not in IGNORED for name in files_below(source)), f".dockerignore drops {source}"

    def test_runs_as_a_user_that_is_not_root_by_number(self, image: Image) -> None:
        user, group = image.only("USER").text.split(":")
        assert int(user) >= 1000
        created = " ".join(one.text for one in image.all("RUN"))
        assert f"--uid {user} --gid {group}" in created
        last_run = max(number for number, one in enumerate(image.last) if one.name == "RUN")
        assert image.last.index(image.only("USER")) > last_run

    def test_says_what_it_is_how_it_stops_and_where_its_state_is(self, image: Image) -> None:
        assert "org.opencontainers.image.licenses" in image.only("LABEL").text
        assert image.only("STOPSIGNAL").text == "SIGTERM"
        assert image.ports
        made = " ".join(one.text for one in image.all("RUN") if "install --directory --owner" in one.text)
        for path in (image.only("VOLUME").text, image.only("WORKDIR").text):
            assert re.search(rf"{path}(?![\w/-])", made), f"nobody makes {path} for the user"

    def test_keeps_no_package_lists(self, image: Image) -> None:
        for stage in image.stages:
            for one in stage:
                updates = "apt-get update" in one.text
                assert not updates or "rm -rf /var/lib/apt/lists/*" in one.text

    def test_names_only_files_that_a_step_or_a_package_brings(self, image: Image) -> None:
        brought = [one.words[-1] for one in image.all("COPY")]
        brought += [path for one in image.all("RUN") for path in re.findall(r"(?<= )/[\w./-]+", one.text)]
        words = [*image.only("CMD").words, *image.health_check]
        for path in re.findall(r"(?<![\w/:])/(?:etc|opt|usr|var)[\w./-]*", "\n".join(words)):
            is_made = any(f"{path}/".startswith(made.rstrip("/") + "/") for made in brought)
            assert is_made or Path(path).exists(), f"{path} is made by no step, and no package has it"


def test_the_build_context_has_all_sources_and_nothing_else() -> None:
    for kept in ("README.md", "LICENSE", "setup.py", "wsdl/hpwsn.wsdl", "scripts/locks/node.txt"):
        assert kept not in IGNORED, kept
    for folder in ("hpwsn", "client/hpwsn_client", "admin/hpwsn_admin"):
        for name in files_below(folder):
            assert (name in IGNORED) == name.endswith(".pyc"), name
    for dropped in (
        ".git/config",
        ".venv/bin/python",
        "build/activemq/data",
        "hpwsn/__pycache__/cli.pyc",
        "hpwsn-data/journal.db",
        "hpwsn.toml",
        "scripts/deploy/docker/secrets/cluster-secret",
        "tests/harness.py",
        "hpwsn.egg-info/PKG-INFO",
    ):
        assert dropped in IGNORED, dropped


class TestTheImageOfANode:
    def test_has_no_build_tools_and_no_java(self) -> None:
        assert len(NODE.stages) == 2
        for one in NODE.all("RUN"):
            assert not BUILD_TOOLS.search(one.text), one.text

    def test_installs_by_the_lock_with_hashes_before_our_own_code(self) -> None:
        build = [one.text for one in NODE.stages[0] if one.name in ("RUN", "COPY")]
        locked = next(number for number, text in enumerate(build) if "--require-hashes" in text)
        own = next(number for number, text in enumerate(build) if "--no-deps" in text)
        assert locked < build.index(". /src") < own
        locks = re.findall(r"/src/(scripts/\S+)", build[locked])
        assert locks == ["scripts/locks/build.txt", "scripts/locks/node.txt"]
        assert all((ROOT / lock).is_file() for lock in locks)

    def test_is_told_by_its_health_check_whether_the_node_lives(self, tmp_path: Path) -> None:
        name, port = NODE.health_check
        assert NODE.ports == {int(port)}
        script = str(ROOT / "scripts" / "deploy" / "docker" / name)
        with NodeProcess(tmp_path / "data") as node:
            command = [sys.executable, script, str(node.port)]
            proxied = {"http_proxy": "http://127.0.0.1:9"}
            assert subprocess.run(command, env=proxied, timeout=PATIENCE).returncode == 0
        assert subprocess.run(command, capture_output=True, timeout=PATIENCE).returncode == 1

    def test_starts_a_node_that_listens_on_every_address(self) -> None:
        assert NODE.only("CMD").words == ["hpwsn", "serve"]
        config = load_config(None, settings_of(NODE.environment)).config
        assert config.server.host == config.admin.host == "0.0.0.0"
        assert config.data.dir == config.admin.dir == NODE.only("VOLUME").text
        assert {config.server.port} == NODE.ports
        installed = NODE.all("COPY")[0].words[-1]
        assert NODE.environment["PATH"].split(":")[0] == f"{installed}/bin"
        script = (ROOT / "scripts/deploy/docker/health-check").read_text()
        assert script.startswith(f"#!{installed}/bin/python\n")


def test_the_image_and_the_unit_of_activemq_start_the_same_command() -> None:
    unit = (ROOT / "scripts/deploy/systemd/hpwsn-activemq.service").read_text().replace("\\\n", " ")
    (started,) = re.findall(r"^ExecStart=/usr/bin/(.*)$", unit, re.MULTILINE)
    assert IMAGES["activemq.Dockerfile"].only("CMD").words == started.split()


def test_the_image_of_activemq_exposes_the_ports_of_its_connectors() -> None:
    connectors = re.findall(r"0\.0\.0\.0:(\d+)", (ROOT / "scripts/deploy/activemq.xml").read_text())
    assert {61613, 1883} <= set(map(int, connectors)) <= IMAGES["activemq.Dockerfile"].ports


def settings_of(environment: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in environment.items() if name.startswith("HPWSN_")}


class Service:
    """A service of a compose file, and the image that it runs."""

    def __init__(self, path: Path, name: str) -> None:
        self.file = load_compose(path)
        self.data: dict[str, Any] = self.file["services"][name]
        self.image = IMAGES[Path(self.data["build"]["dockerfile"]).name]
        self.environment = settings_of({**self.image.environment, **self.data.get("environment", {})})
        self.secrets = [
            one if isinstance(one, str) else one["source"] for one in self.data.get("secrets", [])
        ]


@pytest.mark.parametrize(("path", "name"), SERVICES)
class TestEachService:
    def test_is_built_from_the_checkout(self, path: Path, name: str) -> None:
        build = load_compose(path)["services"][name]["build"]
        assert (path.parent / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]) in DOCKERFILES

    def test_is_published_on_this_host_alone(self, path: Path, name: str) -> None:
        service = Service(path, name)
        ports = service.image.ports | ({8070} if name == "admin" else set())
        for published in service.data["ports"]:
            host, _, inside = published.split(":")
            assert host == "127.0.0.1"
            assert int(inside) in ports

    def test_uses_only_secrets_that_the_file_has_and_the_script_makes(
        self, path: Path, name: str, secrets: Path
    ) -> None:
        service = Service(path, name)
        for secret in service.secrets:
            file = path.parent / service.file["secrets"][secret]["file"]
            assert file.parent.name == "secrets"
            assert (secrets / file.name).stat().st_size
        for variable, value in service.environment.items():
            if SECRET_VARIABLE.search(variable):
                assert variable.endswith("_FILE"), f"{variable} is a secret in the file"
                assert value.removeprefix("/run/secrets/") in service.secrets

    def test_keeps_its_state_in_a_named_volume(self, path: Path, name: str) -> None:
        service = Service(path, name)
        (mounted,) = service.data["volumes"]
        volume, target = mounted.split(":")
        assert volume in service.file["volumes"]
        assert target == service.image.only("VOLUME").text

    def test_has_a_health_check_and_no_rights(self, path: Path, name: str) -> None:
        service = Service(path, name)
        assert service.data.get("healthcheck") or service.image.health_check
        assert service.data["cap_drop"] == ["ALL"]
        assert service.data["read_only"] is True
        assert "privileged" not in service.data
        assert "user" not in service.data

    def test_has_settings_that_a_node_takes(self, path: Path, name: str, secrets: Path) -> None:
        service = Service(path, name)
        given = {
            variable: value.replace("/run/secrets", str(secrets))
            for variable, value in service.environment.items()
        }
        load_config(None, given)

    def test_reaches_other_services_by_name_at_ports_that_they_expose(self, path: Path, name: str) -> None:
        service = Service(path, name)
        addresses = [value for value in service.environment.values() if "://" in value]
        for url in map(urlsplit, addresses):
            if url.hostname != "127.0.0.1":
                other = Service(path, str(url.hostname))
                assert url.port in other.image.ports | {8070}, url


@pytest.mark.parametrize("path", COMPOSE_FILES, ids=lambda path: path.stem)
class TestEachComposeFile:
    def test_defines_no_volume_and_no_secret_that_nobody_uses(self, path: Path) -> None:
        file = load_compose(path)
        services = [Service(path, name) for name in file["services"]]
        used = {secret for one in services for secret in one.secrets}
        assert set(file.get("secrets", {})) == used
        volumes = [mounted.split(":")[0] for one in services for mounted in one.data["volumes"]]
        assert sorted(file["volumes"]) == sorted(volumes)

    def test_publishes_every_port_once(self, path: Path) -> None:
        services = load_compose(path)["services"].values()
        ports = [published.split(":")[1] for one in services for published in one["ports"]]
        assert len(ports) == len(set(ports))

    def test_gives_each_node_a_name_and_addresses_of_its_own(self, path: Path) -> None:
        for name in load_compose(path)["services"]:
            service = Service(path, name)
            if "HPWSN_SERVER_PUBLIC_URL" not in service.environment:
                continue
            (published,) = service.data["ports"]
            address = published.rsplit(":", 1)[0]
            assert service.environment["HPWSN_SERVER_PUBLIC_URL"] == f"http://{address}"
            if "HPWSN_CLUSTER_URL" in service.environment:
                assert service.environment["HPWSN_NODE_NAME"] == name
                assert service.environment["HPWSN_CLUSTER_URL"] == f"http://{name}:8080"
                links = service.environment["HPWSN_ROUTING_PORT"]
                assert service.environment["HPWSN_ROUTING_PUBLIC"] == f"{name}:{links}"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The secrets of an installation."""
    folder = tmp_path_factory.mktemp("installation") / "secrets"
    make_secrets(folder)
    return folder


def make_secrets(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts/deploy/make-secrets"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


class TestMakeSecrets:
    def test_makes_them_for_their_owner_and_keeps_those_that_exist(self, tmp_path: Path) -> None:
        folder = tmp_path / "secrets"
        assert make_secrets(folder).returncode == 0
        first = {file.name: file.read_text() for file in folder.iterdir()}
        assert folder.stat().st_mode & 0o777 == 0o700
        assert all(
            re.fullmatch(r"[\w-]{43}", first[name]) for name in first if name != "activemq-credentials"
        )
        assert len(set(first.values())) == len(first) == 6
        (folder / "activemq-password").unlink()
        assert make_secrets(folder).returncode == 0
        second = {file.name: file.read_text() for file in folder.iterdir()}
        changed = {name for name in first if first[name] != second[name]}
        assert changed == {"activemq-password", "activemq-credentials"}
        assert f"nodes.password={second['activemq-password']}\n" in second["activemq-credentials"]

    def test_refuses_a_folder_that_others_can_enter_and_changes_nothing(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o750)
        refused = make_secrets(tmp_path)
        assert refused.returncode == 1
        assert f"others can enter {tmp_path}" in refused.stderr
        assert not list(tmp_path.iterdir())


class TestTheStarterOfSlapd:
    """`slapd-start` with real OpenLDAP, in other folders and at another port than in the image."""

    @pytest.fixture
    def start(self, tmp_path: Path, secrets: Path) -> Iterator[Any]:
        self.secrets = shutil.copytree(secrets, tmp_path / "secrets")
        self.port = quiet_port()
        conf, data, tools = tmp_path / "conf", tmp_path / "data", tmp_path / "bin"
        for folder in (conf, data, tools):
            folder.mkdir()
        places = {
            "/etc/hpwsn/slapd": str(conf),
            "/var/lib/hpwsn-slapd": str(data),
            "/run/secrets": str(self.secrets),
            "0.0.0.0:1389": f"127.0.0.1:{self.port}",
        }
        for source in IMAGES["slapd.Dockerfile"].sources:
            text = (ROOT / source).read_text()
            for documented, actual in places.items():
                text = text.replace(documented, actual)
            (conf / Path(source).name).write_text(text)
        # AppArmor confines the server to the system's own folders, by its path.
        need("slapd")
        slapd = shutil.which("slapd", path=f"{os.environ['PATH']}:/usr/sbin")
        assert slapd
        shutil.copy(slapd, tools / "slapd")
        for tool in ("slapadd", "slapmodify", "slappasswd"):
            (tools / tool).symlink_to("slapd")
        running: list[subprocess.Popen[bytes]] = []

        def starter() -> subprocess.Popen[bytes]:
            path = f"{tools}:{os.environ['PATH']}:/usr/sbin"
            process = subprocess.Popen(["sh", str(conf / "slapd-start")], env={"PATH": path})
            running.append(process)
            until(lambda: process.poll() is not None or self.binds("", ""))
            assert process.poll() is None
            return process

        yield starter
        for process in running:
            process.terminate()
            process.wait(PATIENCE)

    def connection(self) -> Any:
        return ldap.initialize(f"ldap://127.0.0.1:{self.port}")

    def binds(self, name: str, password: str) -> bool:
        try:
            self.connection().simple_bind_s(name, password)
        except (ldap.SERVER_DOWN, ldap.INVALID_CREDENTIALS):
            return False
        return True

    def password(self, name: str) -> str:
        return (self.secrets / name).read_text()

    def topics(self, name: str, password: str) -> list[str]:
        one = self.connection()
        one.simple_bind_s(name, password)
        found = one.search_s("ou=topics,dc=hpwsn", ldap.SCOPE_SUBTREE, "(objectClass=hpwsnTopic)")
        return [dn for dn, _ in found]

    def test_makes_a_directory_that_nodes_read_and_the_admin_edits(self, start: Any) -> None:
        start()
        admin = self.connection()
        admin.simple_bind_s("cn=admin,dc=hpwsn", self.password("ldap-admin-password"))
        entry = [("objectClass", [b"hpwsnTopic"]), ("cn", [b"ALL"])]
        admin.add_s("cn=ALL,ou=topics,dc=hpwsn", entry)
        node = "cn=node,dc=hpwsn", self.password("ldap-node-password")
        assert self.topics(*node) == ["cn=ALL,ou=topics,dc=hpwsn"]
        with pytest.raises(ldap.NO_SUCH_OBJECT):
            self.topics("", "")
        reader = self.connection()
        reader.simple_bind_s(*node)
        with pytest.raises(ldap.INSUFFICIENT_ACCESS):
            reader.delete_s("cn=ALL,ou=topics,dc=hpwsn")

    def test_keeps_the_topics_and_takes_new_passwords_at_the_next_start(self, start: Any) -> None:
        first = start()
        admin = self.connection()
        admin.simple_bind_s("cn=admin,dc=hpwsn", self.password("ldap-admin-password"))
        admin.add_s("cn=ALL,ou=topics,dc=hpwsn", [("objectClass", [b"hpwsnTopic"]), ("cn", [b"ALL"])])
        first.terminate()
        assert first.wait(PATIENCE) == 0
        old = self.password("ldap-node-password")
        (self.secrets / "ldap-node-password").write_text("another\n")
        start()
        assert self.topics("cn=node,dc=hpwsn", "another") == ["cn=ALL,ou=topics,dc=hpwsn"]
        assert not self.binds("cn=node,dc=hpwsn", old)

"""The two distributions, built and installed as a stranger would: complete, apart, and working."""

from __future__ import annotations

import os
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from lxml import etree
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from trove_classifiers import classifiers as known_classifiers

from hpwsn_client import __version__
from tests.harness import ROOT, NodeProcess
from tests.packages import OURS, Built, CleanEnvironment, InstalledNode, build_all, clean_environment
from tests.patience import PATIENCE

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
READMES = {"hpwsn": ROOT / "README.md", "hpwsn-client": ROOT / "client" / "README.md"}
ROUND_TRIP = """
import sys
from hpwsn_client import SyncClient, SyncReceiver

with SyncClient(sys.argv[1]) as client, SyncReceiver() as receiver:
    client.subscribe("ALL", receiver)
    client.notify("ALL:ALARM", "fire in the hall")
    print(next(iter(receiver)).text)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Wheels and sdists of both distributions."""
    return build_all(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CleanEnvironment]:
    """An environment with both wheels; for tests that only look."""
    environment = CleanEnvironment(tmp_path_factory.mktemp("installed") / "environment", built.wheelhouse)
    environment.install(*built.wheels.values())
    yield environment


def files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def parsed(wheel: Path) -> Metadata:
    """The metadata of a wheel; what breaks the standard is an error."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Metadata.from_email(archive.read(name), validate=True)


def check_client(environment: CleanEnvironment, url: str) -> None:
    """The client of an environment publishes and listens at a node, and its command knows its version."""
    assert environment.run("python", "-c", ROUND_TRIP, url) == "fire in the hall\n"
    assert environment.run("hpwsn-client", "--version") == f"hpwsn-client {__version__}\n"


def check_node(environment: CleanEnvironment, data: Path) -> None:
    """The node of an environment serves, and ends when it is told to."""
    with InstalledNode(environment, data) as node:
        check_client(environment, node.url)
        assert node.terminate() == 0


def check_commands(environment: CleanEnvironment, data: Path) -> None:
    """By the commands of an environment a node serves, and a listener gets what is published."""
    with InstalledNode(environment, data) as node:
        listener = subprocess.Popen(
            [environment.command("hpwsn"), "listen", "ALL", "--url", node.url, "--count", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            text=True,
        )
        with listener:
            assert listener.stderr is not None
            assert listener.stderr.readline().startswith("listening to ALL")
            environment.run("hpwsn", "publish", "ALL:ALARM", "smoke", "--url", node.url)
            heard, _ = listener.communicate(timeout=PATIENCE)
        assert (listener.returncode, heard) == (0, "ALL:ALARM\tsmoke\n")


def test_no_file_is_in_both_wheels(built: Built) -> None:
    node, client = (files_in(wheel) for wheel in built.wheels.values())
    assert not node & client
    packages = {"hpwsn", "hpwsn_admin", "pyspark_hpwsn"}
    assert {name.split("/")[0] for name in node if ".dist-info" not in name} == packages
    assert {name.split("/")[0] for name in client if ".dist-info" not in name} == {"hpwsn_client"}


@pytest.mark.parametrize("name", OURS)
def test_a_wheel_holds_every_file_of_its_packages(built: Built, name: str) -> None:
    roots = {"hpwsn": ("hpwsn", "admin/hpwsn_admin"), "hpwsn-client": ("client/hpwsn_client",)}[name]
    expected = {
        str(Path(folder, file).relative_to((built.source / root).parent))
        for root in roots
        for folder, _, files in os.walk(built.source / root, followlinks=True)
        for file in files
        # A package of its own in the wheel, where PySpark looks for it.
        if "/lookup/" not in f"{folder}/"
    }
    assert len(expected) > 50
    assert expected <= files_in(built.wheels[name])


@pytest.mark.parametrize("name", OURS)
def test_the_metadata_of_a_wheel_is_complete_and_valid(built: Built, name: str) -> None:
    found = parsed(built.wheels[name])
    assert (canonicalize_name(found.name), str(found.version)) == (name, __version__)
    assert (found.license_expression, found.license_files) == ("Apache-2.0", ["LICENSE"])
    assert (found.description, found.description_content_type) == (READMES[name].read_text(), "text/markdown")
    assert found.summary and found.keywords
    assert set(found.classifiers or ()) <= set(known_classifiers)


@pytest.mark.parametrize("name", OURS)
def test_a_wheel_names_exactly_the_pythons_that_it_runs_on(built: Built, name: str) -> None:
    found = parsed(built.wheels[name])
    listed = [line.rpartition(" ")[2] for line in found.classifiers or () if " :: 3." in line]
    assert listed == list(PYTHONS)
    assert found.requires_python is not None
    assert [version for version in PYTHONS if f"{version}.1" in found.requires_python] == list(PYTHONS)
    assert "3.10.9" not in found.requires_python


@pytest.mark.parametrize("name", OURS)
def test_no_extra_is_empty(built: Built, name: str) -> None:
    found = parsed(built.wheels[name])
    for extra in found.provides_extra or ():
        wanted = [
            one.name for one in found.requires_dist or () if one.marker and f'"{extra}"' in str(one.marker)
        ]
        assert wanted, f"{name}[{extra}] installs nothing"


def test_the_node_requires_the_client_of_its_own_version(built: Built) -> None:
    assert Requirement(f"hpwsn-client=={__version__}") in (parsed(built.wheels["hpwsn"]).requires_dist or ())


@pytest.mark.parametrize("name", OURS)
def test_a_license_is_in_each_wheel(built: Built, name: str) -> None:
    with zipfile.ZipFile(built.wheels[name]) as archive:
        (path,) = (path for path in archive.namelist() if path.endswith("licenses/LICENSE"))
        assert archive.read(path) == (ROOT / "LICENSE").read_bytes()


def test_build_requirements_agree() -> None:
    read = [tomllib.loads((ROOT / where / "pyproject.toml").read_text()) for where in OURS.values()]
    assert read[0]["build-system"] == read[1]["build-system"]


def test_wheels_serve_publish_and_listen_with_what_they_declare(
    installed: CleanEnvironment, tmp_path: Path
) -> None:
    check_node(installed, tmp_path / "first")
    check_commands(installed, tmp_path / "second")
    assert installed.complaints() == ""


def test_sdists_serve_publish_and_listen_built_without_the_checkout(
    built: Built, installed: CleanEnvironment, tmp_path: Path
) -> None:
    environment = installed.dependencies_alone(tmp_path / "environment")
    environment.install(*built.sdists.values())
    check_node(environment, tmp_path / "data")


def test_a_checkout_installs_as_the_documents_say(
    built: Built, installed: CleanEnvironment, tmp_path: Path
) -> None:
    environment = installed.dependencies_alone(tmp_path / "environment")
    environment.install(built.source / "client", built.source)
    check_node(environment, tmp_path / "data")


def test_an_installed_node_serves_its_contracts(installed: CleanEnvironment, tmp_path: Path) -> None:
    with InstalledNode(installed, tmp_path / "data") as node:
        for address in (f"{node.url}?wsdl", f"{node.base}/onvif/events?wsdl"):
            with urlopen(address, timeout=PATIENCE) as answer:
                assert etree.fromstring(answer.read()).tag == "{http://schemas.xmlsoap.org/wsdl/}definitions"


def test_installed_commands_read_and_write_their_files(installed: CleanEnvironment, tmp_path: Path) -> None:
    topics = tmp_path / "topics.toml"
    installed.run("hpwsn", "topics", "add", "ALL:ALARM", "--topics", topics)
    assert installed.run("hpwsn", "topics", "list", "--topics", topics) == "ALL\n└── ALARM\n"
    found = sorted(installed.site.glob("hpwsn/streams/examples/*.toml"))
    assert found
    installed.run("hpwsn", "streams", "check", *found)


def test_the_client_installs_alone(built: Built, shared_node: NodeProcess, tmp_path: Path) -> None:
    environment = CleanEnvironment(tmp_path / "environment", built.wheelhouse)
    environment.install(built.wheels["hpwsn-client"])
    assert environment.packages() == {"hpwsn_client"}
    assert not environment.command("hpwsn").exists()
    check_client(environment, shared_node.url)


def test_an_editable_install_has_the_package_that_pyspark_looks_for_on_the_path(
    installed: CleanEnvironment, built: Built, tmp_path: Path
) -> None:
    environment = installed.dependencies_alone(tmp_path / "environment")
    environment.install("--editable", built.source / "client", "--editable", built.source)
    listing = "import pkgutil; print(*(one.name for one in pkgutil.iter_modules()), sep='\\n')"
    assert "pyspark_hpwsn" in environment.run("python", "-c", listing).splitlines()
    environment.uninstall("hpwsn", "hpwsn-client")
    assert not environment.packages()


WALK = ("+client", "+node", "-node", "-client", "+node", "-client", "+client", "-client", "-node")
"""Each way from each state of an environment to another, once; the node brings the client along."""


def test_every_order_of_installing_and_uninstalling_leaves_the_rest_working(
    installed: CleanEnvironment, shared_node: NodeProcess, tmp_path: Path
) -> None:
    environment = installed.dependencies_alone(tmp_path / "environment")
    names = {"client": "hpwsn-client", "node": "hpwsn"}
    present: set[str] = set()
    for number, step in enumerate(WALK):
        action, what = step[0], step[1:]
        if action == "+":
            environment.install(names[what])
            present |= {what, "client"}
        else:
            environment.uninstall(names[what])
            present -= {what}
        check_state(environment, present, shared_node.url, tmp_path / f"step-{number}")


def check_state(environment: CleanEnvironment, present: set[str], url: str, data: Path) -> None:
    """What is present has all its files and works; what is not has left none; a missing client is told."""
    packages = {"client": {"hpwsn_client"}, "node": {"hpwsn", "hpwsn_admin", "pyspark_hpwsn"}}
    assert environment.packages() == {name for what in present for name in packages[what]}
    assert environment.command("hpwsn").exists() == ("node" in present)
    assert environment.command("hpwsn-client").exists() == ("client" in present)
    if present == {"node", "client"}:
        check_node(environment, data)
    elif present == {"client"}:
        check_client(environment, url)
    elif present == {"node"}:
        assert "hpwsn-client, which is not installed" in environment.complaints()

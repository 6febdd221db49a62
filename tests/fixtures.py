"""Fixtures that start real nodes; the conftest of each suite that needs them imports them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness import NodeProcess
from tests.slapd import Slapd


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node on embedded defaults."""
    with NodeProcess(tmp_path / "data") as running:
        yield running


@pytest.fixture(scope="module")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One node for all tests of a module that do not mind each other."""
    with NodeProcess(tmp_path_factory.mktemp("shared") / "data") as running:
        yield running


@pytest.fixture
def fast_retry_node(tmp_path: Path) -> Iterator[NodeProcess]:
    """A node that retries at once, so that a test of retries is quick."""
    settings = ("--set", "delivery.retry_first=0.01", "--set", "delivery.retry_max=0.05")
    with NodeProcess(tmp_path / "data", *settings) as running:
        yield running


@pytest.fixture
def slapd(tmp_path: Path) -> Iterator[Slapd]:
    """An OpenLDAP server with the example tree."""
    with Slapd(tmp_path / "slapd", "--example") as server:
        yield server

"""What a member keeps in its data directory."""

from pathlib import Path

import pytest

from hpwsn.errors import HpwsnError
from hpwsn.routing.membership.credentials import shared_secret
from hpwsn.routing.membership.last_topology import LastTopology, identity_of
from hpwsn.routing.topology.topology import Cluster, Member, Topology
from hpwsn.settings import ClusterSettings

TOPOLOGY = Topology(3, (Cluster("c", "a", (Member("a", "c", "http://a", "a", 1),)),))


def test_the_last_topology_comes_back_if_it_is_of_the_same_admin(tmp_path: Path) -> None:
    LastTopology(tmp_path, "http://admin").save(TOPOLOGY)
    assert LastTopology(tmp_path, "http://admin").load() == TOPOLOGY
    assert LastTopology(tmp_path, "http://another").load() is None


@pytest.mark.parametrize("text", ["", "{}", '{"admin":"x","topology":{"version":-1}}', "[]"])
def test_a_file_that_cannot_be_read_is_no_topology(tmp_path: Path, text: str) -> None:
    last = LastTopology(tmp_path, "x")
    assert last.load() is None
    last.path.write_text(text)
    assert last.load() is None


def test_a_data_directory_gives_its_node_one_identity_for_ever(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = identity_of(tmp_path)
    assert len(first) == 32
    assert identity_of(tmp_path) == first
    assert identity_of(tmp_path / "other") != first


def test_the_secret_comes_from_the_setting_or_from_the_file_without_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush\n")
    assert shared_secret(ClusterSettings(secret="hush")) == b"hush"
    assert shared_secret(ClusterSettings(secret_file=str(tmp_path / "secret"))) == b"hush"


@pytest.mark.parametrize("content", [None, "", " \n", "x" * 5000])
def test_a_secret_that_is_not_there_is_an_error_that_says_what_to_do(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    with pytest.raises(HpwsnError, match=r"secret_file"):
        shared_secret(ClusterSettings(secret_file=str(file)))
    with pytest.raises(HpwsnError, match="HPWSN_CLUSTER_SECRET"):
        shared_secret(ClusterSettings())

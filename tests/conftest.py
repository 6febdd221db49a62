"""What all tests share: the normative schemas of OASIS, how hypothesis runs, and which files come first."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.oasis import Oasis, schema_folder
from tests.skipped_needs import pytest_terminal_summary as pytest_terminal_summary
from tests.user_namespace import in_namespaces
from tests.user_namespace import pytest_configure as pytest_configure

LONG = (
    "system/test_streams_spark.py",
    "system/test_benchmarks.py",
    "system/test_spark_cluster.py",
    "system/test_activemq.py",
    "system/test_streams_job.py",
    "faults/test_kill.py",
    "system/test_docs.py",
    "interop/test_kafka.py",
    "system/test_virtual_services.py",
    "system/page/test_accessibility.py",
    "system/page/test_shell.py",
    "system/test_packages.py",
    "system/test_streams_tutorial.py",
    "faults/test_clock.py",
    "system/test_admin.py",
    "system/page/test_restart.py",
    "system/page/test_hostile.py",
    "system/test_process.py",
    "unit/matching/test_churn.py",
    "unit/matching/test_engines.py",
    "system/test_activemq_internal.py",
    "system/test_activemq_peers.py",
    "system/test_activemq_amqp.py",
    "system/test_odd_path.py",
    "interop/test_stream_peers.py",
    "system/test_cluster.py",
    "system/test_virtual_subscribers.py",
    "system/test_virtual_restart.py",
    "system/test_virtual_users.py",
    "system/test_client_cli.py",
    "system/test_delivery.py",
    "system/test_demand.py",
    "system/test_every_fault.py",
    "system/test_removed_topics.py",
)
"""Files that take 20 seconds or more, the longest first, so that none is left for the end of a run in several
processes. Those that start Spark stand apart, so that not all processes do so at once."""

# How long an example or its making takes tells of the machine, not of the code.
settings.register_profile("hpwsn", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hpwsn")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take long first, and tests that need root into namespaces; all keep their order."""
    in_namespaces(items)
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session")
def oasis_folder() -> Path:
    """Where the standard's own WSDL and schemas are."""
    return schema_folder()


@pytest.fixture(scope="session")
def oasis(oasis_folder: Path) -> Oasis:
    """The normative schemas as one."""
    return Oasis(oasis_folder)

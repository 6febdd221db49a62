"""What all tests share: the normative schemas of OASIS, how hypothesis runs, and which files come first."""

import os
from pathlib import Path

import pytest
from hypothesis import settings
from lxml import etree

LONG = (
    "system/test_streams_spark.py",
    "system/test_benchmarks.py",
    "system/test_activemq.py",
    "system/test_streams_job.py",
    "faults/test_kill.py",
    "system/test_docs.py",
    "system/test_streams_tutorial.py",
    "faults/test_clock.py",
    "system/test_admin.py",
    "system/test_process.py",
    "unit/matching/test_churn.py",
    "unit/matching/test_engines.py",
    "system/test_activemq_internal.py",
    "system/test_activemq_peers.py",
    "system/test_cluster.py",
    "system/test_client_cli.py",
    "system/test_delivery.py",
    "system/test_demand.py",
    "system/test_every_fault.py",
    "system/test_removed_topics.py",
)
"""Files that take 20 seconds or more, the longest first, so that none is left for the end of a run in several
processes. Those that start Spark stand apart, so that not all processes do so at once."""

settings.register_profile("hpwsn", deadline=None, database=None)
settings.load_profile("hpwsn")

SCHEMAS = ("ws-addr.xsd", "bf-2.xsd", "r-2.xsd", "rp-2.xsd", "t-1.xsd", "b-2.xsd", "br-2.xsd")
XSD = "{http://www.w3.org/2001/XMLSchema}"
ANYTHING = "urn:hpwsn:test:anything"


class Oasis:
    """The schemas of WS-Notification, WS-ResourceFramework and WS-Addressing as one, read from a folder."""

    def __init__(self, folder: Path) -> None:
        self._global: dict[str, set[str]] = {}
        self._schema = etree.XMLSchema(
            etree.fromstring(self._wrapper(folder), base_url=folder.as_uri() + "/")
        )

    def _wrapper(self, folder: Path) -> bytes:
        """A schema of one element that holds anything, validated as far as it is known."""
        imports = ""
        for name in SCHEMAS:
            root = etree.parse(folder / name, etree.XMLParser(no_network=True)).getroot()
            namespace = root.get("targetNamespace").strip()
            self._global[namespace] = {element.get("name") for element in root.iterchildren(f"{XSD}element")}
            imports += f'<xs:import namespace="{namespace}" schemaLocation="{(folder / name).as_uri()}"/>'
        return (
            f'<xs:schema xmlns:xs="{XSD[1:-1]}" targetNamespace="{ANYTHING}">{imports}'
            '<xs:element name="anything"><xs:complexType><xs:sequence>'
            '<xs:any processContents="lax"/></xs:sequence></xs:complexType></xs:element></xs:schema>'
        ).encode()

    def validate(self, given: etree._Element | bytes) -> None:
        """Assert that an element, and all it holds, is as the schemas say; what they do not know passes."""
        element = etree.fromstring(given) if isinstance(given, bytes) else given
        data = etree.tostring(element, encoding="utf-8", with_tail=False)
        document = etree.fromstring(b'<x:anything xmlns:x="%s">%s</x:anything>' % (ANYTHING.encode(), data))
        name = etree.QName(document[0])
        known = self._global.get(name.namespace or "")
        assert known is None or name.localname in known, f"{name} is not an element of the schemas"
        errors = "" if self._schema.validate(document) else "\n".join(map(str, self._schema.error_log))
        assert not errors, f"{errors}\nin {data.decode()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take long first; all others keep their order."""
    here = Path(__file__).parent
    places = {here / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session")
def oasis_folder() -> Path:
    """Where the standard's own WSDL and schemas are, which are no part of the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "oasis"
    folder = Path(os.environ.get("OASIS_SCHEMAS", beside))
    if not (folder / "b-2.xsd").is_file():
        pytest.skip(f"no OASIS schemas in {folder}: set OASIS_SCHEMAS to the folder that has b-2.xsd")
    return folder.resolve()


@pytest.fixture(scope="session")
def oasis(oasis_folder: Path) -> Oasis:
    """The normative schemas as one."""
    return Oasis(oasis_folder)

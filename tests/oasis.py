"""The normative WSDL and schemas of WS-Notification, WS-ResourceFramework and WS-Addressing.

They are no part of the repository: `scripts/test` fetches them into the checkout (scripts/lib/schemas.sh).
Tests find them here and nowhere else. Without them a test that asks is skipped, which CI does not allow.
"""

from pathlib import Path

import pytest
from lxml import etree

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".schemas"
STAMP = FOLDER / "fetched"
"""Written last, so that a folder with it is complete."""

SCHEMAS = ("ws-addr.xsd", "bf-2.xsd", "r-2.xsd", "rp-2.xsd", "t-1.xsd", "b-2.xsd", "br-2.xsd")
XSD = "{http://www.w3.org/2001/XMLSchema}"
ANYTHING = "urn:hpwsn:test:anything"


def schema_folder() -> Path:
    """The folder of the files; skips the test that asks where they were not fetched."""
    if not STAMP.is_file():
        pytest.skip(
            "the OASIS schemas are not in .schemas: run scripts/test once, which fetches them with Maven"
        )
    return FOLDER


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

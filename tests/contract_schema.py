"""The schemas inside our WSDL as one, for tests of what no schema of tests/oasis.py has."""

from copy import deepcopy
from pathlib import Path

from lxml import etree

from hpwsn import contracts

WSDL_FILE = Path(contracts.__file__).with_name("hpwsn.wsdl")
ONVIF_FILE = Path(contracts.__file__).with_name("onvif-events.wsdl")
PROCESS_FILE = Path(contracts.__file__).with_name("wsn-process.wsdl")
_NS = {"wsdl": "http://schemas.xmlsoap.org/wsdl/", "xs": "http://www.w3.org/2001/XMLSchema"}


def contract_schema(folder: Path, *files: Path) -> etree.XMLSchema:
    """The inline schemas of these WSDLs, else of the broker's, written to a folder as schemas of their own.

    Each import is given the location that a WSDL need not write.
    """
    inline = [
        schema
        for file in files or (WSDL_FILE,)
        for schema in deepcopy(etree.parse(file).getroot()).findall("wsdl:types/xs:schema", _NS)
    ]
    location = {s.get("targetNamespace"): (folder / f"{n}.xsd").as_uri() for n, s in enumerate(inline)}
    for number, schema in enumerate(inline):
        for imported in schema.findall("xs:import", _NS):
            imported.set("schemaLocation", location[imported.get("namespace")])
        (folder / f"{number}.xsd").write_bytes(etree.tostring(schema))
    return joined_schema(folder / "all.xsd", location)


def joined_schema(path: Path, location: dict[str, str]) -> etree.XMLSchema:
    """One schema, at a path, that imports each namespace from its location."""
    imports = "".join(f'<xs:import namespace="{uri}" schemaLocation="{at}"/>' for uri, at in location.items())
    path.write_text(f'<xs:schema xmlns:xs="{_NS["xs"]}">{imports}</xs:schema>')
    return etree.XMLSchema(etree.parse(path))

"""The contracts, as a node serves them at `?wsdl` and as tests and clients load them.

It owns `hpwsn.wsdl`, our own writing of OASIS WS-Notification 1.3 (BaseNotification and pull points), of what
resources have of WSRF 1.2, and of the elements of `urn:hpwsn:1`; `onvif-events.wsdl`, our own writing of
ONVIF's event service, which builds on it; `wsn-process.wsdl`, the interface of the original HPwsn as its
author describes it; and the one thing that differs between nodes: the address. Of the broker's contract
there is a variant for libraries that do not support mixed content, such as zeep: topics and content filters
are strings there. Every message of the variant is a message of the contract. This module parses nothing.
"""

import re
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["broker_wsdl", "onvif_wsdl", "plain_broker_wsdl", "process_wsdl"]

BASE = "http://localhost:8080"
PLACEHOLDER = f"{BASE}/wsn"


def broker_wsdl(location: str) -> bytes:
    """The WSDL with every port at `location`, the URL of this node's broker without a slash at its end."""
    return _template("hpwsn.wsdl").replace(PLACEHOLDER, _attribute(location)).encode()


def plain_broker_wsdl(location: str) -> bytes:
    """The variant of the WSDL in which topics and content filters are strings with a default dialect."""
    return _plain_template().replace(PLACEHOLDER, _attribute(location)).encode()


def onvif_wsdl(base: str) -> bytes:
    """The WSDL of the ONVIF door of the node whose addresses begin with `base`."""
    return _template("onvif-events.wsdl").replace(BASE, _attribute(base)).encode()


def process_wsdl(base: str) -> bytes:
    """The WSDL of the original's door of the node whose addresses begin with `base`."""
    return _template("wsn-process.wsdl").replace(BASE, _attribute(base)).encode()


_SCHEMA = '<xs:schema targetNamespace="http://docs.oasis-open.org/wsn/b-2"'
"""The beginning of the schema of WS-BaseNotification."""
_STRING = """<xs:complexType name="{name}">
        <xs:simpleContent>
          <xs:extension base="xs:string">
            <xs:attribute name="Dialect" type="xs:anyURI" default="{dialect}"/>
          </xs:extension>
        </xs:simpleContent>
      </xs:complexType>"""
_PLAIN = {
    "TopicExpressionType": _STRING.format(
        name="TopicExpressionType", dialect="http://docs.oasis-open.org/wsn/t-1/TopicExpression/Simple"
    ),
    "QueryExpressionType": _STRING.format(name="QueryExpressionType", dialect="urn:hpwsn:predicates"),
    "FilterType": """<xs:complexType name="FilterType">
        <xs:sequence>
          <xs:element ref="wsnt:TopicExpression" minOccurs="0" maxOccurs="unbounded"/>
          <xs:element ref="wsnt:ProducerProperties" minOccurs="0" maxOccurs="unbounded"/>
          <xs:element ref="wsnt:MessageContent" minOccurs="0" maxOccurs="unbounded"/>
        </xs:sequence>
      </xs:complexType>""",
}
"""The types that differ in the variant, by their names."""


@cache
def _plain_template() -> str:
    before, begin, schema = _template("hpwsn.wsdl").partition(_SCHEMA)
    schema, end, after = schema.partition("</xs:schema>")
    for name, plain in _PLAIN.items():
        of_type = re.compile(rf'<xs:complexType name="{name}".*?</xs:complexType>', re.DOTALL)
        schema, found = of_type.subn(plain, schema)
        assert found == 1, name
    return "".join((before, begin, schema, end, after))


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})


@cache
def _template(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")

"""The contracts, as a node serves them at `?wsdl` and as tests and clients load them.

It owns `hpwsn.wsdl`, our own writing of OASIS WS-Notification 1.3 (BaseNotification and pull points), of what
resources have of WSRF 1.2, and of the elements of `urn:hpwsn:1`; `onvif-events.wsdl`, our own writing of
ONVIF's event service, which builds on it; `wsn-process.wsdl`, the interface of the original HPwsn as its
author describes it; and the one thing that differs between nodes: the address. It
parses nothing.
"""

from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["broker_wsdl", "onvif_wsdl", "process_wsdl"]

BASE = "http://localhost:8080"
PLACEHOLDER = f"{BASE}/wsn"


def broker_wsdl(location: str) -> bytes:
    """The WSDL with every port at `location`, the URL of this node's broker without a slash at its end."""
    return _template("hpwsn.wsdl").replace(PLACEHOLDER, _attribute(location)).encode()


def onvif_wsdl(base: str) -> bytes:
    """The WSDL of the ONVIF door of the node whose addresses begin with `base`."""
    return _template("onvif-events.wsdl").replace(BASE, _attribute(base)).encode()


def process_wsdl(base: str) -> bytes:
    """The WSDL of the original's door of the node whose addresses begin with `base`."""
    return _template("wsn-process.wsdl").replace(BASE, _attribute(base)).encode()


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})


@cache
def _template(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")

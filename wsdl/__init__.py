"""The broker's contract, as a node serves it at `?wsdl` and as tests and clients load it.

It owns `hpwsn.wsdl`, our own writing of OASIS WS-Notification 1.3 (BaseNotification and pull points), of what
resources have of WSRF 1.2, and of the elements of `urn:hpwsn:1`; and the one thing that differs between
nodes: the address. It parses nothing.
"""

from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

__all__ = ["broker_wsdl"]

PLACEHOLDER = "http://localhost:8080/wsn"


def broker_wsdl(location: str) -> bytes:
    """The WSDL with every port at `location`, the URL of this node's broker without a slash at its end."""
    return _template().replace(PLACEHOLDER, escape(location, {'"': "&quot;"})).encode()


@cache
def _template() -> str:
    return Path(__file__).with_name("hpwsn.wsdl").read_text(encoding="utf-8")

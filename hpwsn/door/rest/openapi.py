"""The OpenAPI 3.1 document that a node serves at /openapi.json.

The document is the data file openapi.json in this folder. This module adds the version and the node's
address. The document describes the events in JSON, the operator API and the stream services; the WSDL
describes SOAP. It contains no limits that are settings of a node, and no grammar of topics or XPath. Its
other limits repeat constants of the code, and tests/unit/door/rest/test_openapi.py compares the two.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from hpwsn_client import __version__


def document(base_url: str) -> dict[str, Any]:
    """Return the document for a node at this address; the caller must not change the nested objects."""
    stored = _load()
    return {
        **stored,
        "info": {**stored["info"], "version": __version__},
        "servers": [{"url": base_url}],
    }


@cache
def _load() -> dict[str, Any]:
    text = files("hpwsn.door.rest").joinpath("openapi.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded

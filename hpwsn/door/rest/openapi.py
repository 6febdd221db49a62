"""The OpenAPI 3.1 document that a node serves at /openapi.json.

The document is stored in parts, in the folder openapi_parts: document.json has what all share, and each other
file the paths and schemas of one subject. The parts that the admin node has too are in hpwsn.http_json. This
module joins them, and adds the version and the node's address. The document describes the events in JSON, the
operator API, the stream services, the sensors and the carriers; the WSDL describes SOAP. It contains no
limits that are settings of a node, and no grammar of topics or XPath. Its other limits repeat constants of
the code, and tests/unit/door/rest/test_openapi.py compares the two.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from hpwsn.http_json.shared_openapi import shared_parts
from hpwsn_client import __version__

PARTS = (
    "events",
    "node",
    "subscriptions",
    "presence",
    "pull_points",
    "registrations",
    "dead_letters",
    "topics",
    "topic_editing",
    "streams",
    "sensors",
    "carriers",
)
"""The subjects, one file each, in the order of the document."""


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
    stored = _load_part("document")
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for part in (*map(_load_part, PARTS), *shared_parts()):
        paths |= part["paths"]
        schemas |= part["schemas"]
    return {**stored, "paths": paths, "components": {**stored["components"], "schemas": schemas}}


def _load_part(name: str) -> dict[str, Any]:
    text = files("hpwsn.door.rest.openapi_parts").joinpath(f"{name}.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded

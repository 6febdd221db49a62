"""The parts of OpenAPI documents that describe addresses of nodes and of the admin node alike."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

SHARED_PARTS = ("monitoring", "cluster")
"""The subjects, one file each; each has paths and schemas, and refers to a schema `Error`."""


def shared_parts() -> list[dict[str, Any]]:
    """Load the parts anew: the caller may change them."""
    return [_load(name) for name in SHARED_PARTS]


def _load(name: str) -> dict[str, Any]:
    text = files("hpwsn.http_json.openapi_parts").joinpath(f"{name}.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded

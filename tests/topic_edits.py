"""Requests that edit the topics of a node."""

from __future__ import annotations

import json
from typing import Any

from tests.harness import NodeProcess
from tests.raw_soap import send


async def edit(node: NodeProcess, *changes: Any, dry_run: bool = False) -> tuple[int, dict[str, Any]]:
    """POST /topics/changes."""
    parameters = "?dry_run=true" if dry_run else ""
    return await post(node, f"/topics/changes{parameters}", {"changes": list(changes)})


async def change(node: NodeProcess, *changes: Any) -> dict[str, Any]:
    """POST /topics/changes, which must succeed."""
    status, found = await edit(node, *changes)
    assert status == 200, found
    return found


async def post(node: NodeProcess, path: str, body: Any) -> tuple[int, dict[str, Any]]:
    """POST of a JSON object: status and answer."""
    reply = await send(f"{node.base}{path}", json.dumps(body).encode(), "application/json")
    return reply.status, json.loads(reply.body)


async def export(node: NodeProcess, form: str = "toml") -> str:
    """GET /topics/export."""
    reply = await send(f"{node.base}/topics/export?format={form}", b"", method="GET")
    found = json.loads(reply.body)
    assert found["format"] == form
    return str(found["text"])

"""The admin node's API as an OpenAPI document, for its page, for scripts and for whoever tries every form."""

from __future__ import annotations

from typing import Any

from hpwsn_client import __version__

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "maxLength": 2048}
_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
_KEY: Schema = {"type": "string", "maxLength": 64}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
_VERSION: Schema = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


_SCHEMAS: dict[str, Schema] = {
    "Node": _object(
        name=_NAME,
        url={**_TEXT, "description": "The base of its HTTP addresses."},
        host={**_TEXT, "description": "Where its links are, by UDP and by TCP."},
        port=_PORT,
        version={**_TEXT, "description": "Of its software."},
        state={"type": "string", "enum": ["alive", "dead", "left"]},
        since={"type": "number", "description": "Since when it is so, in seconds since 1970."},
    ),
    "Cluster": _object(
        name=_NAME,
        representative={
            "type": ["string", "null"],
            "description": "Who speaks for it, if one lives.",
        },
        nodes={"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
    ),
    "Topology": _object(
        version=_VERSION, clusters={"type": "array", "items": {"$ref": "#/components/schemas/Cluster"}}
    ),
    "Announcement": _object(
        name=_NAME,
        cluster=_NAME,
        url=_TEXT,
        host={**_TEXT, "description": "Empty for the address that the request comes from."},
        port=_PORT,
        version=_TEXT,
        identity={**_KEY, "description": "Lasts as long as the node's data directory."},
        session={**_KEY, "description": "Lasts as long as the node's process."},
    ),
    "Registered": _object(
        heartbeat={"type": "number", "description": "Seconds between two heartbeats."},
        missed={"type": "integer", "description": "Heartbeats missed until a node counts as dead."},
        topology={"$ref": "#/components/schemas/Topology"},
    ),
    "Topics": _object(
        topics={
            "type": "array",
            "items": _object(topic=_TEXT, description=_TEXT, routing={"enum": ["udp", "tcp", None]}),
        }
    ),
    "Heard": _object(topology=_VERSION),
    "Status": _object(
        version=_TEXT,
        uptime={"type": "number"},
        topology=_VERSION,
        heartbeat={"type": "number"},
        clusters={"type": "integer"},
        nodes={"type": "object", "additionalProperties": {"type": "integer"}},
    ),
    "Done": {"type": "object"},
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {"type": "string"},
            "now": {"type": "number", "description": "The time here, for one who signed before the start."},
        },
    },
}

_REASONS = {
    400: "Something in it cannot be used.",
    401: "It is not signed with the cluster secret, or not at this time.",
    404: "There is no such thing here; a node must register.",
    409: "Another live node has the name, or the node is alive.",
    413: "The body is too large.",
    503: "As many nodes are registered as may be, or the topic directory is away.",
}
_NAMED: Schema = {"name": "name", "in": "path", "required": True, "schema": _NAME}
_SIGNED: list[Schema] = [{"time": [], "nonce": [], "signature": []}]


def document(base_url: str) -> Schema:
    """The document for an admin node at an address."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "HPwsn: the admin node of a cluster", "version": __version__},
        "servers": [{"url": base_url}],
        "paths": _paths(),
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                name: {"type": "apiKey", "in": "header", "name": f"Hpwsn-{name.title()}"}
                for name in ("time", "nonce", "signature")
            },
        },
    }


def _paths() -> Schema:
    session = _query("session", _KEY, "The session that the node registered with.")
    operator = _query("session", _KEY, "The node's session; without it, one that is gone is forgotten.")
    return {
        "/api/topology": {"get": _topology()},
        "/api/status": {"get": _operation("status", "How many there are.", _json("Status"))},
        "/api/topics": {"get": _operation("topics", "The topic tree, if any.", _json("Topics"), 404, 503)},
        "/api/nodes": {
            "post": {
                **_operation(
                    "register", "A node registers.", _json("Registered"), 400, 401, 409, 413, 503, signed=True
                ),
                "requestBody": {"required": True, "content": _json("Announcement")["content"]},
            }
        },
        "/api/nodes/{name}": {
            "parameters": [_NAMED, operator],
            "delete": _operation("leave", "A node stops.", _json("Done"), 401, 404, 409, signed=True),
        },
        "/api/nodes/{name}/heartbeat": {
            "parameters": [_NAMED, session],
            "put": _operation("heartbeat", "A node lives.", _json("Heard"), 401, 404, signed=True),
        },
        "/api/nodes/{name}/suspect": {
            "parameters": [_NAMED],
            "post": _operation(
                "suspect", "A peer cannot reach a node: look after it.", _json("Done"), 401, 404, signed=True
            ),
        },
        "/api/nodes/{name}/stream": {
            "parameters": [_NAMED, session, _query("after", _VERSION, "The version that the node has.")],
            "get": _operation("stream", _STREAM, _lines(), 401, 404, signed=True),
        },
    }


_STREAM = (
    "Lines without end, each a signature, a blank and a JSON object:"
    " the `topology` first; then, at each change, the clusters that have changed and the names of those that"
    " are gone, `after` a version; a `beat` when there was none for a heartbeat."
)


def _topology() -> Schema:
    wait: Schema = {"type": "number", "minimum": 0, "default": 0}
    operation = _operation("topology", "All clusters and their nodes.", _json("Topology"), 400)
    operation["parameters"] = [
        _query("after", _VERSION, "Wait for another version than this."),
        _query("wait", wait, "Seconds to wait for it; 60 at most."),
    ]
    return operation


def _operation(id_: str, summary: str, answer: Schema, *refusals: int, signed: bool = False) -> Schema:
    responses = {"200": answer} | {
        str(status): {**_json("Error"), "description": _REASONS[status]} for status in refusals
    }
    operation: Schema = {"operationId": id_, "summary": summary, "responses": responses}
    return {**operation, "security": _SIGNED} if signed else operation


def _json(schema: str) -> Schema:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": schema, "content": content}


def _lines() -> Schema:
    return {"description": "Lines.", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}


def _query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}

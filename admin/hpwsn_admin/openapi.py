"""The OpenAPI document of the admin node's HTTP API, served at /openapi.json.

The addresses that nodes have too are described in hpwsn.http_json; /history needs the name of a node here.
"""

from __future__ import annotations

from typing import Any

from hpwsn.http_json.shared_openapi import shared_parts
from hpwsn.routing.membership.node_report import MAX_FIGURES, MAX_LINKS
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
        url={**_TEXT, "description": "The base URL of the node's HTTP API."},
        host={**_TEXT, "description": "The host of the node's UDP and TCP links."},
        port=_PORT,
        version={**_TEXT, "description": "The version of the node's software."},
        state={"type": "string", "enum": ["alive", "dead", "left"]},
        since={
            "type": "number",
            "description": "The time of the last change of `state`, in seconds since 1970.",
        },
    ),
    "Cluster": _object(
        name=_NAME,
        representative={
            "type": ["string", "null"],
            "description": "The node that represents the cluster; null if no node is alive.",
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
        host={**_TEXT, "description": "Empty means the address from which the request comes."},
        port=_PORT,
        version=_TEXT,
        identity={**_KEY, "description": "The same for the life of the node's data directory."},
        session={**_KEY, "description": "The same for the life of the node's process."},
    ),
    "Registered": _object(
        heartbeat={"type": "number", "description": "Seconds between two heartbeats."},
        missed={"type": "integer", "description": "Missed heartbeats after which a node is dead."},
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
    "Report": {
        "type": "object",
        "properties": {
            "figures": {
                "type": "object",
                "maxProperties": MAX_FIGURES,
                "additionalProperties": {"type": ["number", "null"]},
                "description": "Figures of the node; those that the admin node does not know are ignored.",
            },
            "links": {
                "type": "array",
                "maxItems": MAX_LINKS,
                "items": {"type": "object", "description": "As `ClusterLink`, without `from`."},
            },
        },
        "description": "What a node reports about itself; earlier versions send no body.",
    },
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {"type": "string"},
            "now": {
                "type": "number",
                "description": "The admin node's time, when the request was signed before it started.",
            },
        },
    },
}

_REASONS = {
    400: "The request is not valid.",
    401: "The signature is missing or wrong, or its time is outside the accepted window.",
    404: "The node or the topic directory does not exist; a node must register first.",
    409: "Another live node has the name, or the node to remove is alive.",
    413: "The body is too large.",
    503: "The limit of registered nodes is reached, or the topic directory is unreachable.",
}
_NAMED: Schema = {"name": "name", "in": "path", "required": True, "schema": _NAME}
_SIGNED: list[Schema] = [{"time": [], "nonce": [], "signature": []}]


def document(base_url: str) -> Schema:
    """The OpenAPI document of the admin node at `base_url`."""
    shared_paths: Schema = {}
    shared_schemas: Schema = {}
    for part in shared_parts():
        shared_paths |= part["paths"]
        shared_schemas |= part["schemas"]
    for parameter in shared_paths["/history"]["get"]["parameters"]:
        parameter["required"] = parameter["name"] == "node"
    return {
        "openapi": "3.1.0",
        "info": {"title": "HPwsn: the admin node of a cluster", "version": __version__},
        "servers": [{"url": base_url}],
        "paths": {**shared_paths, **_paths()},
        "components": {
            "schemas": {**shared_schemas, **_SCHEMAS},
            "securitySchemes": {
                name: {"type": "apiKey", "in": "header", "name": f"Hpwsn-{name.title()}"}
                for name in ("time", "nonce", "signature")
            },
        },
    }


def _paths() -> Schema:
    session = _query("session", _KEY, "The session with which the node registered.")
    operator = _query(
        "session", _KEY, "The node's session; without it, a node that is dead or has left is removed."
    )
    return {
        "/metrics": {
            "get": {
                "operationId": "metrics",
                "summary": "Metrics for Prometheus; OpenMetrics if the Accept header asks for it.",
                "responses": {
                    "200": {
                        "description": "The metrics.",
                        "content": {
                            kind: {"schema": {"type": "string"}}
                            for kind in ("text/plain", "application/openmetrics-text")
                        },
                    }
                },
            }
        },
        "/nodes/{name}": {
            "parameters": [_NAMED],
            "delete": {
                "operationId": "forget",
                "summary": "Remove a node that is dead or has left.",
                "responses": {
                    "204": {"description": "The node is removed, and the topology without it is published."},
                    **_refusals(400, 404, 409),
                },
            },
        },
        "/api/topology": {"get": _topology()},
        "/api/status": {"get": _operation("status", "The numbers of clusters and nodes.", _json("Status"))},
        "/api/topics": {"get": _operation("topics", "The topic tree.", _json("Topics"), 404, 503)},
        "/api/nodes": {
            "post": {
                **_operation(
                    "register", "Register a node.", _json("Registered"), 400, 401, 409, 413, 503, signed=True
                ),
                "requestBody": {"required": True, "content": _json("Announcement")["content"]},
            }
        },
        "/api/nodes/{name}": {
            "parameters": [_NAMED, operator],
            "delete": _operation(
                "leave",
                "A node leaves, or an operator removes it.",
                _json("Done"),
                401,
                404,
                409,
                signed=True,
            ),
        },
        "/api/nodes/{name}/heartbeat": {
            "parameters": [_NAMED, session],
            "put": {
                **_operation(
                    "heartbeat", "Send a heartbeat.", _json("Heard"), 400, 401, 404, 413, signed=True
                ),
                "requestBody": {"required": False, "content": _json("Report")["content"]},
            },
        },
        "/api/nodes/{name}/suspect": {
            "parameters": [_NAMED],
            "post": _operation(
                "suspect",
                "Report that a peer cannot reach a node; the admin node probes it.",
                _json("Done"),
                401,
                404,
                signed=True,
            ),
        },
        "/api/nodes/{name}/stream": {
            "parameters": [
                _NAMED,
                session,
                _query("after", _VERSION, "The topology version that the node already has."),
            ],
            "get": _operation("stream", _STREAM, _lines(), 401, 404, signed=True),
        },
    }


_STREAM = (
    "An endless stream of lines, each a signature, a space and a JSON object."
    " The first line has the `topology`. Each change gives a line with the changed clusters and the names of"
    " removed clusters, `after` a version. A `beat` follows each heartbeat interval without a change."
)


def _topology() -> Schema:
    wait: Schema = {"type": "number", "minimum": 0, "default": 0}
    operation = _operation("topology", "All clusters and their nodes.", _json("Topology"), 400)
    operation["parameters"] = [
        _query("after", _VERSION, "Wait for a version other than this."),
        _query("wait", wait, "Seconds to wait for a change, at most 60."),
    ]
    return operation


def _operation(id_: str, summary: str, answer: Schema, *refusals: int, signed: bool = False) -> Schema:
    operation: Schema = {
        "operationId": id_,
        "summary": summary,
        "responses": {"200": answer, **_refusals(*refusals)},
    }
    return {**operation, "security": _SIGNED} if signed else operation


def _refusals(*statuses: int) -> Schema:
    return {str(status): {**_json("Error"), "description": _REASONS[status]} for status in statuses}


def _json(schema: str) -> Schema:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": schema, "content": content}


def _lines() -> Schema:
    return {"description": "Lines.", "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}


def _query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}

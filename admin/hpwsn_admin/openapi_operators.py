"""The part of the admin node's OpenAPI document that is for operators: /cluster and the relay to nodes."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "maxLength": 2048}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
MEASURED: Schema = {"type": ["number", "null"]}


def record(**properties: Schema) -> Schema:
    """The schema of an object that has all of these properties."""
    return {"type": "object", "required": list(properties), "properties": properties}


def reference(schema: str) -> Schema:
    """A schema of the document, by its name."""
    return {"$ref": f"#/components/schemas/{schema}"}


def list_of(schema: str) -> Schema:
    """An array of objects of one schema."""
    return {"type": "array", "items": reference(schema)}


def json_answer(schema: str, description: str = "") -> Schema:
    """An answer in JSON."""
    content = {"application/json": {"schema": reference(schema)}}
    return {"description": description or schema, "content": content}


def node_schema(**more: Schema) -> Schema:
    """A node in the topology, and what an address tells about it beyond that."""
    return record(
        name=NAME,
        url={**TEXT, "description": "The base URL of the node's HTTP API."},
        host={**TEXT, "description": "The host of the node's UDP and TCP links."},
        port={"type": "integer", "minimum": 1, "maximum": 65535},
        version={**TEXT, "description": "The version of the node's software."},
        state={"type": "string", "enum": ["alive", "dead", "left"]},
        since={
            "type": "number",
            "description": "The time of the last change of `state`, in seconds since 1970.",
        },
        **more,
    )


def cluster_schema(nodes: str) -> Schema:
    """A cluster with its nodes."""
    return record(
        name=NAME,
        representative={
            "type": ["string", "null"],
            "description": "The node that represents the cluster; null if no node is alive.",
        },
        nodes=list_of(nodes),
    )


SCHEMAS: dict[str, Schema] = {
    "NodeView": node_schema(
        heartbeat_age={
            **MEASURED,
            "description": "Seconds since the last heartbeat; null if none came since this start.",
        },
        figures={
            "type": ["object", "null"],
            "additionalProperties": MEASURED,
            "description": "The figures in the last heartbeat; null without them or if it is not alive.",
        },
    ),
    "ClusterNodes": cluster_schema("NodeView"),
    "Link": record(
        **{
            "from": NAME,
            "to": NAME,
            "by": {"type": "string", "enum": ["udp", "tcp"]},
            "state": {
                "type": "string",
                "enum": ["up", "down"],
                "description": "Whether the receiving node has answered.",
            },
            "rate": {
                "type": "number",
                "description": "Messages per second, the mean since the heartbeat before.",
            },
            "bytes": {
                "type": "number",
                "description": "Bytes per second, the mean since the heartbeat before.",
            },
            "unconfirmed": {
                "type": "integer",
                "description": "Bytes that wait, or that the receiving node has not confirmed.",
            },
        }
    ),
    "ClusterView": record(
        version={"type": "integer", "minimum": 0, "description": "The version of the topology."},
        clusters=list_of("ClusterNodes"),
        links={**list_of("Link"), "description": "Links on which something was sent; at most 100 of a node."},
        partial={"type": "null", "description": "A node tells here what it does not know; always null here."},
    ),
}

_ADDRESS: Schema = {
    "name": "address",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "description": "An operator address of that node, with its slashes as they are; the node's /openapi.json"
    " describes it.",
}
_NODE: Schema = {"name": "name", "in": "path", "required": True, "schema": NAME}
_REFUSALS = {
    "400": "The request is not valid, or is a WebSocket, which is not relayed.",
    "403": "A web page of another origin may not write.",
    "404": "No node has this name, or the address is not relayed; or the answer of that node.",
    "413": "The body is too large.",
    "502": "The node cannot be reached, or its answer broke off.",
    "503": "The node is dead or has left the cluster.",
    "504": "The node did not answer in time.",
}


def paths() -> Schema:
    """The paths of the operators' addresses."""
    return {
        "/cluster": {
            "get": {
                "operationId": "cluster",
                "summary": "All clusters: nodes with ages of heartbeats and figures, traffic of links.",
                "responses": {
                    "200": json_answer("ClusterView"),
                    "400": json_answer("Error", "A parameter is unknown."),
                },
            }
        },
        "/nodes/{name}/{address}": {
            "parameters": [_NODE, _ADDRESS],
            **{method: _relay(method) for method in ("get", "post", "patch", "delete")},
        },
    }


def _relay(method: str) -> Schema:
    responses = {status: json_answer("Error", words) for status, words in _REFUSALS.items()}
    operation: Schema = {
        "operationId": f"{method}AtNode",
        "summary": f"{method.upper()} at a node, relayed by the admin node.",
        "responses": {**responses, "default": {"description": "The answer of that node."}},
    }
    if method in ("post", "patch"):
        operation["requestBody"] = {"required": False, "content": {"application/json": {"schema": {}}}}
    return operation

"""The JSON door described for machines: an OpenAPI 3.1 document, written by hand, served at /openapi.json."""

from __future__ import annotations

from typing import Any

from hpwsn_client import __version__

Schema = dict[str, Any]

_TOPIC: Schema = {
    "name": "topic",
    "in": "path",
    "required": True,
    "description": "A topic, `A:B:C`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 4096},
    "example": "sensors:hall",
}
_OFFSET: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999_999}
_EVENT: Schema = {
    "type": "object",
    "required": ["offset", "topic", "time", "id", "data"],
    "properties": {
        "offset": {**_OFFSET, "description": "Its place in the log, which only grows."},
        "topic": {"type": "string"},
        "time": {"type": "string", "format": "date-time", "description": "When the node took it."},
        "id": {"type": ["string", "null"], "description": "The id that its publisher gave, if any."},
        "data": {"type": "object"},
    },
    "additionalProperties": False,
}
_SPAN: Schema = {
    "type": "object",
    "required": ["first", "last"],
    "properties": {"first": _OFFSET, "last": _OFFSET},
    "additionalProperties": False,
}
_ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string"},
        "line": {"type": "integer", "minimum": 1},
        "column": {"type": "integer", "minimum": 1},
    },
    "additionalProperties": False,
}


def document(base_url: str) -> Schema:
    """The document for a node at an address."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "HPwsn: events in JSON", "version": __version__},
        "servers": [{"url": base_url}],
        "paths": {
            "/topics/{topic}/events": {"parameters": [_TOPIC], "post": _publish(), "get": _read()},
            "/openapi.json": {"get": _describe()},
        },
        "components": {"schemas": {"Event": _EVENT, "Span": _SPAN, "Error": _ERROR}},
    }


def _publish() -> Schema:
    event: Schema = {"type": "object"}
    events: Schema = {"type": "array", "items": event, "minItems": 1}
    return {
        "operationId": "publish",
        "summary": "Publish one event, or several, all or none.",
        "parameters": [
            _parameter("id", {"type": "string"}, "An id: repeated, it is accepted and not published again."),
            _parameter("Hpwsn-Message-Id", {"type": "string"}, "The same as `id`.", "header"),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"oneOf": [event, events]}},
                "application/x-ndjson": {"schema": {"type": "string"}},
            },
        },
        "responses": {
            "202": _answer("They are in the log, at these offsets.", "Span"),
            **_refusals(400, 404, 408, 413, 415, 500, 503),
        },
    }


def _read() -> Schema:
    number: Schema = {"type": "integer", "minimum": 1, "default": 100}
    seconds: Schema = {"type": "number", "minimum": 0, "default": 0}
    after = "Only events after this offset."
    return {
        "operationId": "read",
        "summary": "Read events of the topic and of those below it: a poll, or a stream.",
        "parameters": [
            _parameter("filter", {"type": "string"}, "XPath 1.0 on the XML form of an event."),
            _parameter("after", _OFFSET, f"{after} Absent: a poll from the oldest kept, a stream from now."),
            _parameter("max", number, "Most events of a poll; 1000 at most."),
            _parameter("wait", seconds, "Seconds that a poll waits for the first event; 300 at most."),
            _parameter("Last-Event-ID", _OFFSET, f"{after} For streams, before `after`.", "header"),
        ],
        "responses": {
            "200": {
                "description": "Events in the order of the log.",
                "headers": {
                    "Hpwsn-After": {"schema": _OFFSET, "description": "What to give as `after` next time."}
                },
                "content": {
                    "application/json": {"schema": {"type": "array", "items": _reference("Event")}},
                    "text/event-stream": {"schema": {"type": "string"}},
                },
            },
            **_refusals(400, 404, 500, 503),
        },
    }


def _describe() -> Schema:
    content = {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": "describe",
        "summary": "This document.",
        "responses": {"200": {"description": "The document.", "content": content}},
    }


_REASONS = {
    400: "Not JSON, not a topic, or a parameter that cannot be used.",
    404: "A topic outside the fixed tree.",
    408: "The request did not arrive in time.",
    413: "Too many bytes or events.",
    415: "Neither JSON nor NDJSON.",
    500: "The node failed, and its log says why.",
    503: "The journal cannot take or give this now.",
}


def _refusals(*statuses: int) -> Schema:
    found = {str(status): _answer(_REASONS[status], "Error") for status in statuses}
    found["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return found


def _answer(description: str, schema: str) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": _reference(schema)}}}


def _reference(schema: str) -> Schema:
    return {"$ref": f"#/components/schemas/{schema}"}


def _parameter(name: str, schema: Schema, description: str, place: str = "query") -> Schema:
    return {"name": name, "in": place, "required": False, "description": description, "schema": schema}

"""The node's HTTP addresses described for machines: an OpenAPI 3.1 document, written by hand, served at
/openapi.json.

Owns the events in JSON here, and joins what operators look at (openapi_operators) and stream services
(openapi_streams). SOAP has its WSDL. Limits that are settings of a node are not in it, nor are the grammars
of topics and of XPath.
"""

from __future__ import annotations

from hpwsn.door.rest.openapi_operators import OPERATOR_PATHS, OPERATOR_SCHEMAS
from hpwsn.door.rest.openapi_parts import OFFSET, Schema, answer, parameter, reference, refusals, text
from hpwsn.door.rest.openapi_streams import STREAM_PATHS, STREAM_SCHEMAS
from hpwsn_client import __version__

_IN_XML = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]*$"
"""Text that XML can hold, since SOAP subscribers get the same event."""
_PRINTED = r"^[^\u0000-\u001F\u007F]*$"

_TOPIC: Schema = {
    "name": "topic",
    "in": "path",
    "required": True,
    "description": "A topic, `A:B:C`, of at most 64 names and 4096 characters.",
    "schema": {"type": "string", "minLength": 1},
    "example": "sensors:hall",
}
_VALUE: Schema = {
    "type": ["null", "boolean", "number", "string", "array", "object"],
    "description": "Anything in JSON whose texts and names XML can hold.",
    "pattern": _IN_XML,
    "items": reference("Value"),
    "propertyNames": {"pattern": _IN_XML},
    "additionalProperties": reference("Value"),
}
_DATA: Schema = {
    "type": "object",
    "description": "What a publisher sends as one event.",
    "propertyNames": {"pattern": _IN_XML},
    "additionalProperties": reference("Value"),
}
_EVENT: Schema = {
    "type": "object",
    "required": ["offset", "topic", "time", "id", "data"],
    "properties": {
        "offset": {**OFFSET, "description": "Its place in the log, which only grows."},
        "topic": {"type": "string"},
        "time": {"type": "string", "format": "date-time", "description": "When the node took it."},
        "id": {"type": ["string", "null"], "description": "The id that its publisher gave, if any."},
        "data": {"type": "object"},
    },
    "additionalProperties": False,
}
# null where a backbone that is away will have them later
_OFFSET_OR_NULL: Schema = {**OFFSET, "type": [OFFSET["type"], "null"]}
_SPAN: Schema = {
    "type": "object",
    "required": ["first", "last"],
    "properties": {"first": _OFFSET_OR_NULL, "last": _OFFSET_OR_NULL},
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
_SCHEMAS = {"Event": _EVENT, "Data": _DATA, "Value": _VALUE, "Span": _SPAN, "Error": _ERROR}


def document(base_url: str) -> Schema:
    """The document for a node at an address."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "HPwsn: events in JSON, and a node's state", "version": __version__},
        "servers": [{"url": base_url}],
        "paths": {
            "/topics/{topic}/events": {
                "parameters": [_TOPIC],
                "post": _publish(),
                "get": _read(),
                "head": _end(),
            },
            "/openapi.json": {"get": _describe()},
            **OPERATOR_PATHS,
            **STREAM_PATHS,
        },
        "components": {"schemas": {**_SCHEMAS, **OPERATOR_SCHEMAS, **STREAM_SCHEMAS}},
    }


_REGISTRATION = (
    "The publisher's registration, by its id or its address;"
    " needed where the setting registrations.required is on."
)


def _publish() -> Schema:
    events: Schema = {"type": "array", "items": reference("Data"), "minItems": 1}
    id_: Schema = {"type": "string", "maxLength": 1024, "pattern": _PRINTED}
    return {
        "operationId": "publish",
        "summary": "Publish one event, or several, all or none.",
        "parameters": [
            parameter("id", id_, "An id: repeated, it is accepted and not published again."),
            parameter("reliable", {"type": "boolean"}, "Whether other nodes of clusters must get it."),
            parameter("partial", {"type": "boolean"}, "Whether they may hand out its pieces as they come."),
            parameter("Hpwsn-Message-Id", id_, "The same as `id`; give one of them.", "header"),
            parameter("Hpwsn-Registration", {"type": "string"}, _REGISTRATION, "header"),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"oneOf": [reference("Data"), events]}},
                "application/x-ndjson": {"schema": {"type": "string", "minLength": 2}},
            },
        },
        "responses": {
            "202": answer("They are safe, in the log at these offsets.", "Span"),
            **refusals(400, 403, 404, 408, 413, 415, 500, 503),
        },
    }


_DIALECT = "Of the filter. Absent: XPath where it has paths, prefixes or functions of XPath, else predicates."


def _read() -> Schema:
    number: Schema = {**OFFSET, "minimum": 1, "default": 100}
    seconds: Schema = {"type": "number", "minimum": 0, "default": 0}
    after = "Only events after this offset."
    return {
        "operationId": "read",
        "summary": "Read events of the topic and of those below it: a poll, a stream, or a WebSocket.",
        "parameters": [
            parameter("filter", {"type": "string"}, "Predicates, or XPath 1.0 on the XML form of an event."),
            parameter("dialect", {"type": "string", "enum": ["predicates", "xpath"]}, _DIALECT),
            parameter("after", OFFSET, f"{after} Absent: a poll from the oldest kept, a stream from now."),
            parameter("max", number, "Most events of a poll; 1000 at most."),
            parameter("wait", seconds, "Seconds that a poll waits for the first event; 300 at most."),
            parameter("Last-Event-ID", OFFSET, f"{after} For streams, before `after`.", "header"),
        ],
        "responses": {
            "200": {
                "description": "Events in the order of the log.",
                "headers": {
                    "Hpwsn-After": {
                        "schema": OFFSET,
                        "description": "What to give a poll as `after` next time.",
                    }
                },
                "content": {
                    "application/json": {"schema": {"type": "array", "items": reference("Event")}},
                    "text/event-stream": {"schema": {"type": "string"}},
                },
            },
            "101": {"description": "A WebSocket, which an upgrade asks for: a text message for each event."},
            **refusals(400, 403, 404, 500, 503),
        },
    }


def _end() -> Schema:
    after: Schema = {
        "schema": OFFSET,
        "description": "The offset of the last event in the log.",
    }
    waiting: Schema = {
        "schema": {"type": "integer", "minimum": 0},
        "description": "Where `after` is given: the events on the topic, and below it, after that offset.",
    }
    headers = {"Hpwsn-After": after, "Hpwsn-Waiting": waiting}
    refused = {
        status: {"description": "As for GET, without words."} for status in ("400", "404", "500", "503")
    }
    return {
        "operationId": "end",
        "summary": "Where the log ends now: what a stream that begins now begins after.",
        "parameters": [parameter("after", OFFSET, "Count the events after this offset, too.")],
        "responses": {"200": {"description": "There.", "headers": headers}, **refused},
    }


def _describe() -> Schema:
    return {
        "operationId": "describe",
        "summary": "This document.",
        "responses": {"200": text("The document.", "application/json", {"type": "object"})},
    }

"""Stream services, described for machines: what jobs register and what operators list."""

from __future__ import annotations

from hpwsn.door.rest.openapi_parts import Schema, answer, parameter, reference, refusals
from hpwsn.streams.registry.service import MAX_TEXT, STATES

_TEXT: Schema = {"type": "string", "maxLength": MAX_TEXT}
_NAMED: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_FIGURES: Schema = {
    "type": "object",
    "description": "How it runs: rates, lag, times of a batch.",
    "additionalProperties": {"type": "number"},
}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_GIVEN: Schema = {
    "topic": {**_NAMED, "description": "Where its events are published, `A:B:C`.", "example": "traffic:flow"},
    "instance": {**_NAMED, "description": "The run; the same after a restart from its checkpoint."},
    "description": _TEXT,
    "state": {"type": "string", "enum": list(STATES)},
    "attributes": {**_TEXTS, "description": "The type of each attribute of its events."},
    "constraints": {**_TEXTS, "description": "The range of attributes, as predicates."},
    "inputs": {**_TEXTS, "description": "What it takes in."},
    "figures": _FIGURES,
}
STREAM_SCHEMAS: Schema = {
    "StreamRegistration": {
        "type": "object",
        "required": ["topic", "instance"],
        "properties": _GIVEN,
        "additionalProperties": False,
    },
    "Stream": {
        "type": "object",
        "required": ["uri", "since", "seen", *_GIVEN],
        "properties": {
            "uri": {"type": "string"},
            **_GIVEN,
            "state": {"type": "string", "enum": [*STATES, "silent"]},
            "since": _MOMENT,
            "seen": _MOMENT,
        },
        "additionalProperties": False,
    },
    "Streams": {
        "type": "object",
        "required": ["streams"],
        "properties": {"streams": {"type": "array", "items": reference("Stream")}},
        "additionalProperties": False,
    },
}
_URI = parameter("uri", {"type": "string", "minLength": 1}, "The uri of a service.", "path")
STREAM_PATHS: Schema = {
    "/streams": {
        "get": {
            "operationId": "streams",
            "summary": "The stream services that are known here.",
            "responses": {"200": answer("They.", "Streams")},
        }
    },
    "/streams/{uri}": {
        "parameters": [_URI],
        "get": {
            "operationId": "showStream",
            "summary": "One stream service.",
            "responses": {"200": answer("It.", "Stream"), **refusals(404)},
        },
        "put": {
            "operationId": "registerStream",
            "summary": "Register a stream service, or say that it is still run.",
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": reference("StreamRegistration")}},
            },
            "responses": {"200": answer("It, as it is listed.", "Stream"), **refusals(400, 409, 413, 503)},
        },
        "delete": {
            "operationId": "dropStream",
            "summary": "Forget a stream service, and its constraints.",
            "responses": {"204": {"description": "It is gone."}, **refusals(404, 503)},
        },
    },
}

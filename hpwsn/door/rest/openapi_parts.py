"""Pieces that the OpenAPI document is made of: parameters, answers, refusals."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

OFFSET: Schema = {"type": "integer", "minimum": 0, "maximum": 999_999_999_999_999_999}

_REASONS = {
    400: "Not JSON, not a topic, or a parameter that cannot be used.",
    403: "Only registered publishers may publish here, or web pages of that origin may not read.",
    404: "There is no such thing here, or a topic is outside the fixed tree.",
    409: "Another run of the service is alive.",
    408: "The request did not arrive in time.",
    413: "Too many bytes or events.",
    415: "Neither JSON nor NDJSON.",
    500: "The node failed, and its log says why.",
    503: "The journal cannot take or give this now.",
}


def reference(schema: str) -> Schema:
    """A schema of the document by its name."""
    return {"$ref": f"#/components/schemas/{schema}"}


def parameter(name: str, schema: Schema, description: str, place: str = "query") -> Schema:
    """A parameter that may be left out, unless it is a part of the path."""
    required = place == "path"
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema}


def text(description: str, media_type: str = "text/plain", schema: Schema | None = None) -> Schema:
    """An answer of a media type, text unless a schema says otherwise."""
    return {"description": description, "content": {media_type: {"schema": schema or {"type": "string"}}}}


def answer(description: str, schema: str) -> Schema:
    """An answer in JSON, by the name of its schema."""
    return text(description, "application/json", reference(schema))


def refusals(*statuses: int) -> Schema:
    """Answers that say no, each with `error`."""
    found = {str(status): answer(_REASONS[status], "Error") for status in statuses}
    if "503" in found:
        found["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return found

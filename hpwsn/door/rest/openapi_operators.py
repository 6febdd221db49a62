"""What operators look at, described for machines: health, state, subscriptions, dead letters, topics.

The figures of /status grow with the node, so its schema names those that every node has and allows more.
"""

from __future__ import annotations

from hpwsn.door.rest.openapi_parts import OFFSET, Schema, answer, parameter, reference, refusals, text

_COUNT: Schema = {"type": "integer", "minimum": 0}
_MOMENT: Schema = {"type": "string", "format": "date-time"}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}


def _or_null(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def _object(properties: Schema, *, more: bool = False) -> Schema:
    """All of these, and no others unless there may be more."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": more,
    }


def _list(name: str, schema: str) -> Schema:
    return _object({name: {"type": "array", "items": reference(schema)}})


_STATUS = _object(
    {
        "node": _TEXT,
        "version": _TEXT,
        "started": _MOMENT,
        "uptime": {"type": "number"},
        "problems": _TEXTS,
        "topics": _COUNT,
        "subscriptions": _COUNT,
        "pull_points": _COUNT,
        "published": _object({"accepted": _COUNT, "repeated": _COUNT, "refused": _COUNT}, more=True),
        "delivery": {"type": "object"},
        "connections": {"type": "object"},
        "journal": {"type": "object"},
    },
    more=True,
)
_SUBSCRIPTION = _object(
    {
        "id": _TEXT,
        "reference": _TEXT,
        "consumer": _TEXT,
        "topics": _TEXTS,
        "content": _TEXTS,
        "created": _MOMENT,
        "terminates": _or_null(_MOMENT),
        "paused": {"type": "boolean"},
        "state": _TEXT,
        "waiting": _COUNT,
        "delivered": _COUNT,
        "dropped": _COUNT,
        "failures": _COUNT,
        "last_error": _or_null(_TEXT),
    },
    more=True,
)
_LETTER: Schema = {
    "id": OFFSET,
    "time": _MOMENT,
    "subscription": _TEXT,
    "consumer": _TEXT,
    "topic": _or_null(_TEXT),
    "published": _MOMENT,
    "offset": OFFSET,
    "reason": _TEXT,
}
_ID: Schema = {**OFFSET, "minimum": 1}
_SELECTION: Schema = {
    "description": "Dead letters by id, by subscription, or all of them.",
    "oneOf": [
        _object({"ids": {"type": "array", "items": _ID, "minItems": 1}}),
        _object({"subscription": {"type": "string", "minLength": 1}}),
        _object({"all": {"const": True}}),
    ],
}

OPERATOR_SCHEMAS: Schema = {
    "Readiness": _object({"ready": {"type": "boolean"}, "problems": _TEXTS}),
    "Status": _STATUS,
    "Subscription": _SUBSCRIPTION,
    "Subscriptions": _list("subscriptions", "Subscription"),
    "DeadLetter": _object(_LETTER),
    "DeadLetterWithPayload": _object({**_LETTER, "payload": _TEXT}),
    "DeadLetters": _list("deadletters", "DeadLetter"),
    "Selection": _SELECTION,
    "Replayed": _object({"sent": _COUNT, "ended": _COUNT}),
    "Dropped": _object({"dropped": _COUNT}),
}


def _operation(name: str, summary: str, responses: Schema, *parameters: Schema) -> Schema:
    return {
        "operationId": name,
        "summary": summary,
        "responses": responses,
        "parameters": list(parameters),
    }


def _select(name: str, summary: str, schema: str) -> Schema:
    content = {"application/json": {"schema": reference("Selection")}}
    responses = {"200": answer("How many.", schema), **refusals(400, 413, 503)}
    return {**_operation(name, summary, responses), "requestBody": {"required": True, "content": content}}


def _one(name: str, what: str, schema: str, id_: Schema) -> Schema:
    ended: Schema = {"description": "It is gone."}
    return {
        "parameters": [parameter("id", id_, f"The id of a {what}.", "path")],
        "get": _operation(
            f"show{name}", f"One {what}.", {"200": answer("It.", schema), **refusals(404, 503)}
        ),
        "delete": _operation(f"drop{name}", f"End one {what}.", {"204": ended, **refusals(404, 503)}),
    }


_NO_TOPICS = text("There are no topics in that namespace.")
OPERATOR_PATHS: Schema = {
    "/healthz": {"get": _operation("health", "Whether the process answers.", {"200": text("It does.")})},
    "/readyz": {
        "get": _operation(
            "readiness",
            "Whether it can take notifications, and what is in the way.",
            {"200": answer("It can.", "Readiness"), "503": answer("It cannot.", "Readiness")},
        )
    },
    "/status": {"get": _operation("status", "The node's figures.", {"200": answer("They.", "Status")})},
    "/metrics": {"get": _operation("metrics", "The same for Prometheus.", {"200": text("Figures.")})},
    "/subscriptions": {
        "get": _operation(
            "subscriptions", "All subscriptions.", {"200": answer("They.", "Subscriptions"), **refusals(503)}
        )
    },
    "/subscriptions/{id}": _one("Subscription", "subscription", "Subscription", {**_TEXT, "minLength": 1}),
    "/deadletters": {
        "get": _operation(
            "deadLetters",
            "Dead letters, oldest first.",
            {"200": answer("They.", "DeadLetters"), **refusals(400, 503)},
            parameter("after", OFFSET, "Only those after this id."),
            parameter("limit", OFFSET, "Most of them; 100 unless given, 1000 at most."),
            parameter("subscription", _TEXT, "Only those of a subscription, by its id."),
        )
    },
    "/deadletters/{id}": _one("DeadLetter", "dead letter", "DeadLetterWithPayload", _ID),
    "/deadletters/replay": {"post": _select("replay", "Send dead letters again.", "Replayed")},
    "/deadletters/drop": {"post": _select("drop", "Drop dead letters.", "Dropped")},
    "/topics/namespace": {
        "get": _operation(
            "topicNamespace",
            "The topics of one namespace, as a TopicNamespace document of WS-Topics.",
            {"200": text("The document.", "text/xml"), "404": _NO_TOPICS},
            parameter("uri", _TEXT, "The namespace; that of topics without one unless given."),
        )
    },
}

"""Answers of the JSON door: objects, and errors with the status of their fault.

Every error is a JSON object with `error`; for invalid JSON it also has `line` and `column`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar

from aiohttp import web

from hpwsn.door.rest.authorization import CHALLENGE, NotAuthorized
from hpwsn.errors import JournalUnavailable
from hpwsn.topics.tree.internal_topics import InternalTopic
from hpwsn_client.wsn.formats.json_text import MalformedJson
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown

log = logging.getLogger(__name__)

Door = TypeVar("Door")
Handler = Callable[[Door, web.Request], Awaitable[web.StreamResponse]]
Handling = Callable[[web.Request], Awaitable[web.StreamResponse]]

INTERNAL = "internal error; the node's log has the details"


def answers_in_json(handler: Handler[Door]) -> Handler[Door]:
    """Turn faults and errors into responses with a JSON object."""

    @wraps(handler)
    async def handle(door: Door, request: web.Request) -> web.StreamResponse:
        try:
            return await handler(door, request)
        except faults.SoapFault as fault:
            return _refuse(fault)
        except JournalUnavailable as error:
            return _refuse(faults.Busy(f"the journal cannot be read: {error}"))
        except (ConnectionError, web.HTTPException):
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return answer({"error": INTERNAL}, 500)

    return handle


@web.middleware
async def errors_in_json(request: web.Request, handler: Handling) -> web.StreamResponse:
    """Answer errors that no handler has put into words, such as an unknown path, with a JSON object.

    The SOAP addresses answer with faults instead.
    """
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400 or error.content_type == "application/json" or speaks_soap(request):
            raise
        response = answer({"error": _words(request, error)}, error.status)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except ConnectionError:
        raise
    except Exception:
        if speaks_soap(request):
            raise
        log.exception("%s %s failed", request.method, request.path)
        return answer({"error": INTERNAL}, 500)


def speaks_soap(request: web.Request) -> bool:
    """Whether the path is that of a SOAP address, whose errors are faults."""
    return request.path.startswith(("/wsn", "/onvif"))


def _words(request: web.Request, error: web.HTTPException) -> str:
    if isinstance(error, web.HTTPMethodNotAllowed):
        return f"{request.path} has no {request.method}; it has {', '.join(sorted(error.allowed_methods))}"
    if error.status == 404:
        return f"{shown(request.path)} is not an address of this node; /openapi.json lists all of them"
    return error.text or error.reason


def moment(time: float | None) -> str | None:
    """A time in seconds since 1970 as ISO 8601 in UTC; None stays None."""
    return None if time is None else datetime.fromtimestamp(time, UTC).isoformat()


def answer(told: Mapping[str, Any], status: int) -> web.Response:
    """A JSON object with a newline at its end, for terminals."""
    return web.json_response(text=json.dumps(told, ensure_ascii=False) + "\n", status=status)


def _refuse(fault: faults.SoapFault) -> web.Response:
    told: dict[str, Any] = {"error": fault.reason}
    if isinstance(fault, MalformedJson) and fault.line:
        told |= {"line": fault.line, "column": fault.column}
    elif column := getattr(fault.__cause__, "column", None):
        told["column"] = column
    response = answer(told, _status(fault))
    if response.status == 401:
        response.headers["WWW-Authenticate"] = CHALLENGE
    if isinstance(fault, faults.Busy):
        response.headers["Retry-After"] = f"{max(fault.retry_after, 1):.0f}"
    return response


def _status(fault: faults.SoapFault) -> int:
    if isinstance(fault, InternalTopic | NotAuthorized):
        return 401
    if isinstance(fault, faults.TopicNotSupportedFault):
        return 404
    if isinstance(fault, faults.PublisherRegistrationRejectedFault | faults.ResourceUnknownFault):
        return 403
    return fault.status or (400 if fault.code is faults.FaultCode.SENDER else 500)


def check_names(request: web.Request, *known: str) -> None:
    """Reject unknown query parameters: with a mistyped `filter`, all events would match.

    Names that start with `_` are ignored, since scripts add them to bypass caches.
    """
    for name in request.query:
        if name not in known and not name.startswith("_"):
            raise bad(f"parameter {shown(name)} is unknown; known parameters are {', '.join(known)}")


def bad(words: str) -> faults.SoapFault:
    """The fault for a parameter that is not valid."""
    return faults.SoapFault(words, status=400)

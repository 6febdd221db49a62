"""Answers of the JSON door: objects, and errors with the status of their fault.

Every error is a JSON object with `error`; for invalid JSON or XML it also has `line` and `column`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from aiohttp import web

from hpwsn.door.rest.authorization import CHALLENGE, NotAuthorized
from hpwsn.errors import JournalUnavailable
from hpwsn.http_json.request_errors import INTERNAL, errors_in_json
from hpwsn.http_json.responses import answer, bad, check_names, moment
from hpwsn.topics.tree.internal_topics import InternalTopic
from hpwsn_client.wsn.formats.json_text import MalformedJson
from hpwsn_client.wsn.soap import faults

__all__ = [
    "answer",
    "answers_in_json",
    "bad",
    "check_names",
    "errors_in_json",
    "moment",
]

log = logging.getLogger(__name__)

Door = TypeVar("Door")
Handler = Callable[[Door, web.Request], Awaitable[web.StreamResponse]]


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


def _refuse(fault: faults.SoapFault) -> web.Response:
    told: dict[str, Any] = {"error": fault.reason}
    if isinstance(fault, MalformedJson | faults.MalformedXml) and fault.line:
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

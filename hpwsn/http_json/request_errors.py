"""Errors of requests as JSON objects with `error`: what was wrong, and what to do.

The SOAP addresses answer with faults instead.
"""

from __future__ import annotations

import logging

from aiohttp import web

from hpwsn.http_json.responses import Handling, answer
from hpwsn_client.wsn.soap.soap_faults import SoapFault
from hpwsn_client.wsn.topics.topic import shown

log = logging.getLogger(__name__)

INTERNAL = "internal error; the node's log has the details"


@web.middleware
async def errors_in_json(request: web.Request, handler: Handling) -> web.StreamResponse:
    """Answer errors that no handler has put into words, such as an unknown path, with a JSON object."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400 or error.content_type == "application/json" or speaks_soap(request):
            raise
        return _error_response(request, error)
    except ConnectionError:
        raise
    except Exception as error:
        if speaks_soap(request):
            raise
        if isinstance(error, SoapFault):
            return answer({"error": error.reason}, error.status or 400)
        log.exception("%s %s failed", request.method, request.path)
        return answer({"error": INTERNAL}, 500)


def speaks_soap(request: web.Request) -> bool:
    """Whether the path is that of a SOAP address, whose errors are faults."""
    return request.path.startswith(("/wsn", "/onvif"))


def _error_response(request: web.Request, error: web.HTTPException) -> web.Response:
    response = answer({"error": _words(request, error)}, error.status)
    if "Allow" in error.headers:
        response.headers["Allow"] = error.headers["Allow"]
    return response


def _words(request: web.Request, error: web.HTTPException) -> str:
    if isinstance(error, web.HTTPMethodNotAllowed):
        return f"{request.path} has no {request.method}; it has {', '.join(sorted(error.allowed_methods))}"
    if error.status == 404:
        return f"{shown(request.path)} is not an address of this node; /openapi.json lists all of them"
    return error.text or error.reason

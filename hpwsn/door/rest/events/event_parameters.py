"""Parameters and headers of requests to the JSON door, each with the error for a value that is not valid."""

from __future__ import annotations

import re
from collections.abc import Mapping

from aiohttp import web

from hpwsn.door.rest.events.payload_views import PayloadView
from hpwsn.door.rest.json_answers import bad
from hpwsn.notification import PARTIAL, RELIABLE
from hpwsn_client.wsn.operations.filters import ContentFilter, likely_dialect
from hpwsn_client.wsn.operations.receipts import JSON_FORM, ReceiptTo
from hpwsn_client.wsn.soap.addressing import EndpointReference
from hpwsn_client.wsn.soap.names import DIALECT_PREDICATES, DIALECT_XPATH, HPWSN
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

ID_HEADER = "Hpwsn-Message-Id"
REGISTRATION_HEADER = "Hpwsn-Registration"
RECEIPT_HEADER = "Hpwsn-Receipt-To"
LONGEST_WAIT = 300.0
MOST_TOPICS = 1000

DIALECTS = {"predicates": DIALECT_PREDICATES, "xpath": DIALECT_XPATH}
_is_id = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,1024}").fullmatch
_is_refusal = re.compile(r"q\s*=\s*0(?:\.0*)?").fullmatch
_is_seconds = re.compile(r"[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?").fullmatch


def topic_of(request: web.Request) -> Topic:
    """The topic in the path."""
    return Topic.parse(request.match_info["topic"])


def topics_of(request: web.Request) -> tuple[Topic, ...]:
    """The topic in the path and those in the parameter `also`, each once."""
    also = request.query.getall("also", [])
    if len(also) > MOST_TOPICS:
        raise bad(f"also is given {len(also)} times; give at most {MOST_TOPICS} further topics")
    return tuple(dict.fromkeys((topic_of(request), *map(Topic.parse, also))))


def message_id_of(request: web.Request) -> str | None:
    """The idempotency key of a publication, if any."""
    given = {value for value in (request.headers.get(ID_HEADER), request.query.get("id")) if value}
    if len(given) > 1:
        raise bad(f"{ID_HEADER} and the parameter id differ; give one of them")
    for value in given:
        if not _is_id(value):
            raise bad(
                f"the id {shown(value)} is not valid; give 1 to 1024 characters without control characters"
            )
    return next(iter(given), None)


def routing_of(request: web.Request) -> int:
    """The routing flags of a publication."""
    asked = 0
    for name, flag in (("reliable", RELIABLE), ("partial", PARTIAL)):
        text = request.query.get(name, "false")
        if text not in ("true", "false"):
            raise bad(f"{name} is {shown(text)}; give true or false, or leave it out")
        asked |= flag * (text == "true")
    return asked


def receipt_to_of(request: web.Request) -> ReceiptTo | None:
    """The address to which receipts are posted as JSON, if the publisher asks for them."""
    address = request.headers.get(RECEIPT_HEADER)
    if not address:
        return None
    return ReceiptTo(EndpointReference(address), message_id_of(request), JSON_FORM)


def registration_of(request: web.Request) -> str | None:
    """The id of the publisher's registration, from the id or the address in the header."""
    return (request.headers.get(REGISTRATION_HEADER) or "").rpartition("/")[2] or None


def content_of(request: web.Request) -> ContentFilter | None:
    """The parameters `filter` and `dialect`; None without a filter."""
    return content_filter(request.query.get("filter", ""), request.query.get("dialect"))


def content_filter(expression: str, named: str | None) -> ContentFilter | None:
    """The filter with this expression and the name of a dialect, if any; None if the expression is blank."""
    if named is not None and named not in DIALECTS:
        raise bad(f"dialect is {shown(named)}; give {' or '.join(DIALECTS)}, or leave it out")
    expression = expression.strip()
    if not expression:
        return None
    dialect = likely_dialect(expression) if named is None else DIALECTS[named]
    return ContentFilter(dialect, expression, (("hp", HPWSN),))


def offset_of(name: str, given: Mapping[str, str]) -> int | None:
    """An offset among parameters or headers."""
    text = given.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise bad(f"{name} is {shown(text)}; give the offset of an event, or leave it out")
    return int(text)


def maximum_of(request: web.Request, default: int) -> int:
    """The parameter `max`."""
    return _positive(request, "max", "a number of events") or default


def max_rate_of(request: web.Request) -> int | None:
    """The parameter `max_rate`, in events a second; None without it."""
    return _positive(request, "max_rate", "a number of events a second")


def view_of(request: web.Request) -> PayloadView:
    """The parameters `payload` and `cut`."""
    payload = request.query.get("payload", "json")
    if payload not in ("json", "raw"):
        raise bad(f"payload is {shown(payload)}; give raw or json, or leave it out")
    return PayloadView(payload == "raw", _positive(request, "cut", "a number of bytes"))


def _positive(request: web.Request, name: str, what: str) -> int | None:
    """A parameter that is 1 or more; None without it."""
    text = request.query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not int(text):
        raise bad(f"{name} is {shown(text)}; give {what}, 1 or more")
    return int(text)


def wait_of(request: web.Request) -> float:
    """The parameter `wait`, in seconds."""
    text = request.query.get("wait", "0")
    if not _is_seconds(text):
        raise bad(f"wait is {shown(text)}; give a number of seconds")
    return min(float(text), LONGEST_WAIT)


def since_of(request: web.Request) -> float | None:
    """The parameter `since`, given in milliseconds, in seconds."""
    text = request.query.get("since")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 15:
        raise bad(f"since is {shown(text)}; give milliseconds since 1970")
    return int(text) / 1000


def accepts(request: web.Request, media_type: str) -> bool:
    """Whether the header Accept names a media type, with a weight other than 0 (RFC 9110, section 12.4.2)."""
    return any(_named(part, media_type) for part in ",".join(request.headers.getall("Accept", ())).split(","))


def _named(part: str, media_type: str) -> bool:
    """Whether a part of Accept is a media type, and accepts it."""
    name, *parameters = (each.strip().lower() for each in part.split(";"))
    return name == media_type and not any(map(_is_refusal, parameters))

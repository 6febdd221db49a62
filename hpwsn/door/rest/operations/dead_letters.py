"""The HTTP API for dead letters: list, show, replay and drop, under /deadletters.

An operator uses it to inspect notifications that could not be delivered. The payload of a notification whose
topic is internal now is null. An error is a JSON object with `error`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from hpwsn.broker.delivery.dead_letters import DeadLetters, Selection
from hpwsn.journal.store.records import DeadLetter

DEFAULT_PAGE, LARGEST_PAGE = 100, 1000
"""Dead letters in one answer: without the parameter `limit`, and at most."""
_JSON = "application/json"
_ONE = "/deadletters/{id:(?!(?:replay|drop)$)[^/]+}"
"""The path of one dead letter; `replay` and `drop` are actions, not ids."""


class DeadLettersDoor:
    """The request handlers for the paths under /deadletters."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/deadletters", self._list),
            web.get(_ONE, self._show),
            web.delete(_ONE, self._drop_one),
            web.post("/deadletters/replay", self._replay),
            web.post("/deadletters/drop", self._drop),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        after = _number(request, "after", 0)
        limit = min(_number(request, "limit", DEFAULT_PAGE), LARGEST_PAGE)
        page = await self._letters.page(limit, after, request.query.get("subscription"))
        return web.json_response({"deadletters": [_describe(letter) for letter in page]})

    async def _show(self, request: web.Request) -> web.Response:
        letter = await self._letters.get(_id(request))
        if letter is None:
            raise _unknown(request)
        payload = None
        if not self._letters.is_internal(letter):
            payload = letter.stored.notification.payload.decode("utf-8", "replace")
        return web.json_response({**_describe(letter), "payload": payload})

    async def _drop_one(self, request: web.Request) -> web.Response:
        if not await self._letters.drop(Selection((_id(request),))):
            raise _unknown(request)
        return web.Response(status=204)

    async def _replay(self, request: web.Request) -> web.Response:
        return web.json_response(asdict(await self._letters.replay(await _selection(request))))

    async def _drop(self, request: web.Request) -> web.Response:
        return web.json_response({"dropped": await self._letters.drop(await _selection(request))})


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def _id(request: web.Request) -> int:
    text = request.match_info["id"]
    if not _is_number(text):
        raise _unknown(request)
    return int(text)


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not _is_number(text):
        raise _bad_request(f"{name} is {text[:40]!r}; give a whole number of at most 18 digits")
    return int(text)


async def _selection(request: web.Request) -> Selection:
    try:
        selection = await request.json()
    except (ValueError, RecursionError) as error:
        raise _bad_request(f"the body is not JSON: {error}; send a JSON object") from error
    except web.HTTPRequestEntityTooLarge as error:
        raise web.HTTPRequestEntityTooLarge(0, 0, text=_error_body(error.text), content_type=_JSON) from error
    match selection:
        case {"ids": [*ids], **rest} if not rest and ids and all(map(_is_id, ids)):
            return Selection(tuple(map(int, ids)))
        case {"subscription": str(subscription), **rest} if not rest and subscription:
            return Selection(subscription=subscription)
        case {"all": True, **rest} if not rest:
            return Selection()
    raise _bad_request(
        'the body does not select dead letters; send {"ids": [1, 2]}, {"subscription": "ID"} or {"all": true}'
    )


def _is_id(value: object) -> bool:
    """Whether a JSON value is an id; JSON has only one kind of number, so 7.0 is 7."""
    return isinstance(value, int | float) and value is not True and 0 < value < 10**18 and value % 1 == 0


def _bad_request(message: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=_error_body(message), content_type=_JSON)


def _unknown(request: web.Request) -> web.HTTPNotFound:
    message = f"there is no dead letter {request.match_info['id'][:40]!r}; GET /deadletters lists them"
    return web.HTTPNotFound(text=_error_body(message), content_type=_JSON)


def _error_body(message: str | None) -> str:
    return json.dumps({"error": message}) + "\n"


def _describe(letter: DeadLetter) -> dict[str, Any]:
    notification = letter.stored.notification
    return {
        "id": letter.id,
        "time": datetime.fromtimestamp(letter.time, UTC).isoformat(timespec="seconds"),
        "subscription": letter.subscription_id,
        "consumer": letter.consumer,
        "topic": None if notification.topic is None else str(notification.topic),
        "published": datetime.fromtimestamp(notification.time, UTC).isoformat(timespec="milliseconds"),
        "offset": letter.stored.offset,
        "reason": letter.reason,
    }

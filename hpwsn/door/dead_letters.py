"""Dead letters over HTTP, for operators: list, show, send again, drop."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from hpwsn.broker.dead_letters import DeadLetters, Selection
from hpwsn.journal.records import DeadLetter

LARGEST_PAGE = 1000


class DeadLettersDoor:
    """The addresses under /deadletters."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def routes(self) -> list[web.RouteDef]:
        """What to add to the node's web application."""
        return [
            web.get("/deadletters", self._list),
            web.get("/deadletters/{id:[0-9]{1,18}}", self._show),
            web.delete("/deadletters/{id:[0-9]{1,18}}", self._drop_one),
            web.post("/deadletters/replay", self._replay),
            web.post("/deadletters/drop", self._drop),
        ]

    async def _list(self, request: web.Request) -> web.Response:
        after, limit = _number(request, "after", 0), min(_number(request, "limit", 100), LARGEST_PAGE)
        page = await self._letters.page(limit, after, request.query.get("subscription"))
        return web.json_response({"deadletters": [_describe(letter) for letter in page]})

    async def _show(self, request: web.Request) -> web.Response:
        letter = await self._letters.get(int(request.match_info["id"]))
        if letter is None:
            return web.json_response({"error": "there is no such dead letter"}, status=404)
        payload = letter.stored.notification.payload.decode("utf-8", "replace")
        return web.json_response({**_describe(letter), "payload": payload})

    async def _drop_one(self, request: web.Request) -> web.Response:
        dropped = await self._letters.drop(Selection((int(request.match_info["id"]),)))
        if not dropped:
            return web.json_response({"error": "there is no such dead letter"}, status=404)
        return web.Response(status=204)

    async def _replay(self, request: web.Request) -> web.Response:
        return web.json_response(asdict(await self._letters.replay(await _selection(request))))

    async def _drop(self, request: web.Request) -> web.Response:
        return web.json_response({"dropped": await self._letters.drop(await _selection(request))})


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isdecimal() or len(text) > 18:
        raise _bad(f"{name} is {text[:40]!r}; give a whole number")
    return int(text)


async def _selection(request: web.Request) -> Selection:
    try:
        asked = await request.json()
    except ValueError as error:
        raise _bad(f"the body is no JSON: {error}") from error
    match asked:
        case {"ids": [*ids], **rest} if (
            not rest and ids and all(type(id_) is int and 0 < id_ < 2**63 for id_ in ids)
        ):
            return Selection(tuple(ids))
        case {"subscription": str(subscription), **rest} if not rest and subscription:
            return Selection(subscription=subscription)
        case {"all": True, **rest} if not rest:
            return Selection()
    raise _bad('select by {"ids": [1, 2]}, {"subscription": "ID"} or {"all": true}')


def _is_id(value: object) -> bool:
    return type(value) is int and 0 < value < 2**63


def _bad(words: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=words + "\n")


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

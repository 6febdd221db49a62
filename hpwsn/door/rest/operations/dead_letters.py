"""The HTTP API for dead letters: list, groups, show, replay and drop, under /deadletters.

An operator uses it to inspect notifications that could not be delivered. The payload of a notification whose
topic is internal now is null. The cursor of a list of dead letters is the id of the last one.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from aiohttp import web

from hpwsn.broker.delivery.dead_letters import DeadLetters, Selection
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names, moment
from hpwsn.http_json.list_pages import limit_of, sorted_page
from hpwsn.journal.store.records import DeadLetter, DeadLetterGroup
from hpwsn_client.wsn.formats.json_text import parse_object
from hpwsn_client.wsn.soap.faults import SoapFault
from hpwsn_client.wsn.topics.topic import shown

LONGEST_WAIT = 60.0
"""Seconds that a replay may wait for the outcomes."""
_ONE = "/deadletters/{id:(?!(?:groups|replay|drop)$)[^/]+}"
"""The path of one dead letter; `groups`, `replay` and `drop` are not ids."""
_ORDERS = {
    "count": lambda group: group.count,
    "first": lambda group: group.first,
    "last": lambda group: group.last,
}
_SELECT = (
    'the body does not select dead letters; send {"ids": [1, 2]}, {"subscription": "ID"},'
    ' {"subscription": "ID", "reason": "REASON"} of a group, or {"all": true}'
)


class DeadLettersDoor:
    """The request handlers for the paths under /deadletters."""

    def __init__(self, letters: DeadLetters) -> None:
        self._letters = letters

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [
            web.get("/deadletters", self._list),
            web.get("/deadletters/groups", self._groups),
            web.get(_ONE, self._show),
            web.delete(_ONE, self._drop_one),
            web.post("/deadletters/replay", self._replay),
            web.post("/deadletters/drop", self._drop),
        ]

    @answers_in_json
    async def _list(self, request: web.Request) -> web.Response:
        check_names(request, "limit", "after", "subscription", "reason")
        limit, after = limit_of(request), _after(request)
        which = Selection((), request.query.get("subscription"), request.query.get("reason"))
        found = await self._letters.page(limit, after, which)
        following = bool(found) and await self._letters.page(1, found[-1].id, which)
        told = {
            "items": [_describe(letter) for letter in found],
            "next": str(found[-1].id) if following else None,
            "total": await self._letters.count(which),
        }
        return answer(told, 200)

    @answers_in_json
    async def _groups(self, request: web.Request) -> web.Response:
        check_names(request, "limit", "after", "sort")
        groups = await self._letters.groups()
        page, following = sorted_page(request, groups, _name_of, _ORDERS, "-count")
        told = {"items": [_describe_group(group) for group in page], "next": following, "total": len(groups)}
        return answer(told, 200)

    @answers_in_json
    async def _show(self, request: web.Request) -> web.Response:
        check_names(request)
        letter = await self._letters.get(_id(request))
        if letter is None:
            raise _unknown(request)
        payload = None
        if not self._letters.is_internal(letter):
            payload = letter.stored.notification.payload.decode("utf-8", "replace")
        return answer({**_describe(letter), "payload": payload}, 200)

    @answers_in_json
    async def _drop_one(self, request: web.Request) -> web.Response:
        check_names(request)
        if not await self._letters.drop(Selection((_id(request),))):
            raise _unknown(request)
        return web.Response(status=204)

    @answers_in_json
    async def _replay(self, request: web.Request) -> web.Response:
        check_names(request, "wait")
        wait = _wait(request)
        return answer(asdict(await self._letters.replay(await _selection(request), wait)), 200)

    @answers_in_json
    async def _drop(self, request: web.Request) -> web.Response:
        check_names(request)
        return answer({"dropped": await self._letters.drop(await _selection(request))}, 200)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def _id(request: web.Request) -> int:
    text = request.match_info["id"]
    if not _is_number(text):
        raise _unknown(request)
    return int(text)


def _after(request: web.Request) -> int:
    text = request.query.get("after", "0")
    if not _is_number(text):
        raise bad(f"after is {shown(text)}; give the value of next from the page before")
    return int(text)


def _wait(request: web.Request) -> float:
    text = request.query.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_WAIT:
        raise bad(f"wait is {shown(text)}; give seconds, from 0 to {LONGEST_WAIT:g}")
    return seconds


async def _selection(request: web.Request) -> Selection:
    selection: Any = parse_object(await request.read())
    match selection:
        case {"ids": [*ids], **rest} if not rest and ids and all(map(_is_id, ids)):
            return Selection(tuple(map(int, ids)))
        case {"subscription": str(subscription), "reason": str(reason), **rest} if not rest and subscription:
            return Selection(subscription=subscription, reason=reason)
        case {"subscription": str(subscription), **rest} if not rest and subscription:
            return Selection(subscription=subscription)
        case {"all": True, **rest} if not rest:
            return Selection()
    raise bad(_SELECT)


def _is_id(value: object) -> bool:
    """Whether a JSON value is an id; JSON has only one kind of number, so 7.0 is 7."""
    return isinstance(value, int | float) and value is not True and 0 < value < 10**18 and value % 1 == 0


def _unknown(request: web.Request) -> SoapFault:
    id_ = shown(request.match_info["id"])
    return SoapFault(f"there is no dead letter {id_}; GET /deadletters lists them", status=404)


def _describe(letter: DeadLetter) -> dict[str, Any]:
    notification = letter.stored.notification
    return {
        "id": letter.id,
        "time": moment(letter.time),
        "subscription": letter.subscription_id,
        "consumer": letter.consumer,
        "topic": None if notification.topic is None else str(notification.topic),
        "published": moment(notification.time),
        "offset": letter.stored.offset,
        "reason": letter.reason,
    }


def _name_of(group: DeadLetterGroup) -> str:
    return json.dumps([group.subscription_id, group.reason])


def _describe_group(group: DeadLetterGroup) -> dict[str, Any]:
    return {
        "subscription": group.subscription_id,
        "reason": group.reason,
        "count": group.count,
        "first": moment(group.first),
        "last": moment(group.last),
        "consumer": group.consumer,
    }

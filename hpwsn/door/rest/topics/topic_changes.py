"""The HTTP API that edits declared topics: POST /topics/changes.

All changes of a request are made, or none. The answer has the changes that undo them, and their effect on
subscriptions; with `dry_run` it has the effect only. It is sent once the tree of this node shows the change.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.broker.topic_effect import TopicEffect
from hpwsn.door.rest.authorization import Accepts, NotAuthorized, reads_internal
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.json_requests import read_object
from hpwsn.topics.directory.directory import Planner, TopicDirectoryError
from hpwsn.topics.directory.topic_editing import TooManyEdits, TopicEditing
from hpwsn.topics.editing.edit_plan import EditPlan, plan_edits
from hpwsn.topics.editing.topic_edit import (
    MOST_EDITS,
    MOST_NAMED,
    Conflict,
    EditsConflict,
    EditsRefused,
    TopicEdit,
    entry_json,
)
from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

LARGEST_EDIT = 16 << 20
"""The most bytes of a request that edits topics."""
_FIELDS = ("op", "topic", "to", "description", "routing", "visibility", "etag", "below")
_TEXTS = ("op", "topic", "to", "description", "routing", "visibility", "etag")
_CLEARED = ("description", "routing", "visibility")
"""Fields in which null removes the value."""

Door = TypeVar("Door", bound="EditingDoor")
Handler = Callable[[Door, web.Request], Awaitable[web.StreamResponse]]


def edits_topics(handler: Handler[Door]) -> Handler[Door]:
    """Refuse edits where topics are only read, and turn errors of edits into answers."""

    @wraps(handler)
    async def handle(door: Door, request: web.Request) -> web.StreamResponse:
        why_not = door.editing.why_not()
        if why_not is not None:
            return answer({"error": why_not}, 403)
        try:
            return await handler(door, request)
        except EditsRefused as error:
            return answer({"error": str(error), "problems": error.problems[:MOST_NAMED]}, 400)
        except EditsConflict as error:
            conflicts = [door.conflict(each) for each in error.conflicts[:MOST_NAMED]]
            return answer({"error": str(error), "conflicts": conflicts}, 409)
        except (TopicDirectoryError, TooManyEdits) as error:
            raise faults.Busy(str(error)) from error

    return answers_in_json(handle)


class EditingDoor:
    """What the request handlers that edit topics share; `revision` is that of the list of topics."""

    def __init__(
        self,
        editing: TopicEditing,
        effect: TopicEffect,
        revision: Callable[[], str],
        patience: float,
        accepts_token: Accepts,
    ) -> None:
        self.editing = editing
        self._effect = effect
        self._revision = revision
        self._patience = patience
        self._accepts_token = accepts_token

    def conflict(self, conflict: Conflict) -> dict[str, Any]:
        """Return a conflict with the topic as the editor knew it, if the node knows, and as it is now."""
        return {
            "topic": str(conflict.topic),
            "error": conflict.reason,
            "base": entry_json(self.editing.former(conflict.topic, conflict.seen)),
            "theirs": entry_json(conflict.theirs),
        }

    async def _read(self, request: web.Request, *fields: str) -> dict[str, Any]:
        return await read_object(request, self._patience, *fields, largest=LARGEST_EDIT)

    def _guarded(self, request: web.Request, planner: Planner) -> Planner:
        """Return the planner; without the token of jobs, its plan may not expose an internal topic."""
        if reads_internal(request, self._accepts_token):
            return planner

        def plan(known: Mapping[Topic, Declaration]) -> EditPlan:
            made = planner(known)
            if made.exposed:
                raise NotAuthorized(
                    f"topic {made.exposed[0]} is internal: only with the token of DATA/job.token can its mark"
                    " be lifted, moved or removed"
                )
            return made

        return plan

    async def _edit(
        self, planner: Planner, dry_run: bool, describe: Callable[[EditPlan], Mapping[str, Any]]
    ) -> web.Response:
        """Make the edits of a plan, and answer with its description, undo and effect."""
        plan, effect = await self.editing.edit(planner, self._effect.of, dry_run)
        revision = self._revision()

        def encode() -> str:
            undo = [] if dry_run else [each.as_json() for each in plan.undo()]
            told = {"revision": revision, **describe(plan), "undo": undo, "effect": effect}
            return json.dumps(told, ensure_ascii=False) + "\n"

        return web.json_response(text=await in_thread(encode))


class TopicChangesDoor(EditingDoor):
    """The request handler for /topics/changes."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.post("/topics/changes", self._change)]

    @edits_topics
    async def _change(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "dry_run")
        dry_run = flag_of(request, "dry_run")
        found = await self._read(request, "changes")
        edits = await self.editing.parse(parse_changes, found.get("changes"))
        planner = self._guarded(request, partial(_plan, edits))
        return await self._edit(planner, dry_run, lambda plan: {})


def _plan(edits: list[TopicEdit], known: Mapping[Topic, Any]) -> EditPlan:
    return plan_edits(known, edits)


def flag_of(request: web.Request, name: str) -> bool:
    """Return a parameter that is true or false; without it, false."""
    text = request.query.get(name, "false")
    if text not in ("true", "false"):
        raise bad(f"{name} is {shown(text)}; give true or false")
    return text == "true"


def parse_changes(changes: Any) -> list[TopicEdit]:
    """Return the edits of a request; EditsRefused names every change that is not valid."""
    if not isinstance(changes, list) or not changes:
        raise EditsRefused(['changes: give a list of objects such as {"op": "add", "topic": "A:B"}'])
    if len(changes) > MOST_EDITS:
        raise EditsRefused([f"changes: {len(changes)} changes exceed the limit of {MOST_EDITS} of a request"])
    problems: list[str] = []
    found: list[TopicEdit] = []
    for number, change in enumerate(changes):
        try:
            found.append(_parse_change(change))
        except ValueError as error:
            problems.append(f"changes[{number}]: {error}")
        except faults.SoapFault as fault:
            problems.append(f"changes[{number}]: {fault.reason}")
    if problems:
        raise EditsRefused(problems)
    return found


def _parse_change(change: Any) -> TopicEdit:
    if not isinstance(change, dict):
        raise ValueError("it must be an object with op and topic")
    for name, value in change.items():
        _check_field(name, value)
    if not change.get("op") or not change.get("topic"):
        raise ValueError(f"op and topic are required; {'topic' if change.get('op') else 'op'} is missing")
    given = {name: value for name, value in change.items() if value is not None}
    given |= {name: "" for name in _CLEARED if name in change and change[name] is None}
    given["topic"] = Topic.parse(given["topic"])
    if "below" in given:
        given["below"] = int(given["below"])
    if "to" in given:
        given["to"] = Topic.parse(given["to"])
    edit = TopicEdit(**given)
    problem = edit.problem()
    if problem is not None:
        raise ValueError(problem)
    return edit


def _check_field(name: str, value: Any) -> None:
    if name not in _FIELDS:
        raise ValueError(f"the field {shown(name)} is unknown; known fields are {', '.join(_FIELDS)}")
    if name in _TEXTS and value is not None and not isinstance(value, str):
        raise ValueError(f"{name} is {shown(str(value))}; it must be a text")
    if name == "below" and value is not None and not _is_count(value):
        raise ValueError(f"below is {shown(str(value))}; it must be a number of topics")


def _is_count(value: Any) -> bool:
    """Whether a value is a whole number; JSON does not tell 3.0 from 3."""
    whole = type(value) is int or (isinstance(value, float) and value.is_integer())
    return whole and value >= 0

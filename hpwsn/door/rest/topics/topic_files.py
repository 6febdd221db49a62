"""The HTTP API that exports and imports declared topics: GET /topics/export, POST /topics/import.

Both use the formats of `hpwsn topics dump` and `load`: a topic file in TOML, or LDIF. An import answers with
the difference to the topics before, and with the changes that undo it; with `dry_run` it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from aiohttp import web

from hpwsn.background import in_thread
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names
from hpwsn.door.rest.topics.topic_changes import EditingDoor, edits_topics, flag_of
from hpwsn.topics.editing.edit_plan import EditPlan, plan_import
from hpwsn.topics.editing.topic_edit import MOST_EDITS, EditsRefused, values_json
from hpwsn.topics.ldap.entries.ldif import encode_ldif, parse_ldif
from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.topic_toml import Document, DocumentError, encode_document, parse_document
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

FORMATS = ("toml", "ldif")
MODES = ("merge", "replace")
LONGEST_TEXT = 4 << 20
"""The most characters of a text to import."""
MOST_LISTED = 1000
"""The most topics in each list of a difference; `totals` counts all."""


class TopicFilesDoor(EditingDoor):
    """The request handlers for /topics/export and /topics/import."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application."""
        return [web.get("/topics/export", self._export), web.post("/topics/import", self._import)]

    @answers_in_json
    async def _export(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "format")
        form = _choice("format", request.query.get("format", "toml"), FORMATS)
        text = await in_thread(_encode, form, self.editing.declarations())
        if "text/plain" not in request.headers.get("Accept", ""):
            return answer({"format": form, "text": text}, 200)
        headers = {"Content-Disposition": f'attachment; filename="topics.{form}"'}
        return web.Response(text=text, headers=headers)

    @edits_topics
    async def _import(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "mode", "dry_run")
        dry_run = flag_of(request, "dry_run")
        merge = _choice("mode", request.query.get("mode", "merge"), MODES) == "merge"
        found = await self._read(request, "format", "text")
        form = _choice("format", found.get("format", "toml"), FORMATS)
        new = await self.editing.parse(_parse, form, found.get("text"), merge)
        planner = self._guarded(request, partial(_plan, new, merge))
        return await self._edit(planner, dry_run, describe_difference)


def _choice(name: str, given: Any, known: tuple[str, ...]) -> str:
    if given not in known:
        raise bad(f"{name} is {shown(str(given))}; give {' or '.join(known)}")
    return str(given)


def _encode(form: str, declarations: list[Declaration]) -> str:
    return encode_ldif(declarations) if form == "ldif" else encode_document(Document(tuple(declarations)))


def _parse(form: str, text: Any, merge: bool) -> Iterable[Declaration]:
    if not isinstance(text, str):
        raise EditsRefused(["text: give the topics as a text in TOML or LDIF, as an export has it"])
    if len(text) > LONGEST_TEXT:
        raise EditsRefused([f"text: it has {len(text)} characters; the limit is {LONGEST_TEXT}"])
    try:
        if form == "ldif":
            found: Sequence[Declaration] = parse_ldif(text, MOST_EDITS)
        else:
            found = parse_document(text, MOST_EDITS).declarations
    except DocumentError as error:
        raise EditsRefused([f"text: {error}"]) from None
    if not found and (merge or (form == "ldif" and not _is_empty(text))):
        raise EditsRefused([f"text: it has no topics in the format {form}; check it, or name its format"])
    return found


def _is_empty(text: str) -> bool:
    """Whether a text has comments only, as the export of no topics."""
    return all(line.startswith("#") or not line.strip() for line in text.split("\n"))


def _plan(new: Iterable[Declaration], merge: bool, known: Mapping[Topic, Declaration]) -> EditPlan:
    return plan_import(known, new, merge)


def describe_difference(plan: EditPlan) -> dict[str, Any]:
    """Return the first topics that a plan adds, changes and removes, and the totals of all three."""
    found: dict[str, list[Any]] = {"added": [], "changed": [], "removed": []}
    for step in plan.steps:
        before, after = step.before, step.after
        if before is not None and after is not None:
            changed = {"before": values_json(before), "after": values_json(after)}
            found["changed"].append({"topic": str(after.topic), **changed})
        elif after is not None:
            found["added"].append(values_json(after))
        elif before is not None:
            found["removed"].append(values_json(before))
    totals = {name: len(items) for name, items in found.items()}
    return {**{name: items[:MOST_LISTED] for name, items in found.items()}, "totals": totals}

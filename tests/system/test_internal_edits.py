"""Edits that lift, move or remove the mark of an internal topic need the token of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.harness import NodeProcess
from tests.internal_topics import shows
from tests.slapd import ADMIN, Slapd
from tests.topic_edits import change, export

START = """\
[topics.T]
[topics.T.SECRET]
visibility = "internal"
[topics.T.SECRET.LANE]
[topics.U]
"""
LIFTED = START.replace('visibility = "internal"\n', "")
CHANGED = START.replace("internal", "public")
CHANGES, MERGE, REPLACE = "/topics/changes", "/topics/import?mode=merge", "/topics/import?mode=replace"


def changes(*found: dict[str, Any]) -> dict[str, Any]:
    return {"changes": list(found)}


def move(topic: str, to: str) -> dict[str, Any]:
    return {"op": "move", "topic": topic, "to": to}


def see(topic: str, visibility: str | None) -> dict[str, Any]:
    return {"op": "set", "topic": topic, "visibility": visibility}


async def post(
    node: NodeProcess, path: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any], str | None]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{node.base}{path}", json=body, headers=headers) as reply,
    ):
        return reply.status, json.loads(await reply.read()), reply.headers.get("WWW-Authenticate")


LIFTING = [
    (CHANGES, changes(see("T:SECRET", None))),
    (CHANGES, changes(see("T:SECRET", "public"))),
    (CHANGES, changes({"op": "remove", "topic": "T:SECRET"})),
    (CHANGES, changes({"op": "remove", "topic": "T"})),
    (CHANGES, changes({"op": "remove", "topic": "T"}, {"op": "add", "topic": "T:SECRET:LANE"})),
    (CHANGES, changes({"op": "remove", "topic": "T:SECRET"}, {**see("T:SECRET", "internal"), "op": "add"})),
    (CHANGES, changes(move("T:SECRET", "V"))),
    (CHANGES, changes(move("T", "V"))),
    (CHANGES, changes(move("T", "V"), move("V", "T"))),
    (CHANGES, changes(move("T:SECRET:LANE", "U:LANE"))),
    (CHANGES, changes(see("U", "internal"), move("T:SECRET", "U:SECRET"))),
    (MERGE, {"text": CHANGED}),
    (REPLACE, {"text": CHANGED}),
    (REPLACE, {"text": LIFTED}),
    (REPLACE, {"text": "[topics.T]"}),
    (REPLACE, {"text": ""}),
    (REPLACE, {"text": "# no topics\n", "format": "ldif"}),
]


async def test_no_way_exposes_an_internal_topic_without_the_token(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        for path, body in LIFTING:
            mark = "&" if "?" in path else "?"
            for each in (path, f"{path}{mark}dry_run=true"):
                status, found, challenge = await post(node, each, body)
                assert (status, challenge) == (401, 'Bearer realm="hpwsn"'), (each, body, found)
                assert "is internal: only with the token of DATA/job.token" in found["error"]
                status, found, _ = await post(node, each, body, {"Authorization": "Bearer wrong"})
                assert status == 401, (each, body, found)
                assert "token is not valid" in found["error"]
            assert file.read_text() == START
            status, found, _ = await post(node, f"{path}{mark}dry_run=true", body, shows(node))
            assert status == 200, (path, body, found)


async def test_a_server_is_guarded_too(slapd: Slapd, tmp_path: Path) -> None:
    account = (f"--set=topics.edit_bind_dn={ADMIN}", f"--set=topics.edit_password_file={slapd.password_file}")
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *account) as node:
        status, found, _ = await post(node, REPLACE, {"text": START}, shows(node))
        assert status == 200, found
        before = await export(node)
        for path, body in LIFTING:
            status, found, challenge = await post(node, path, body)
            assert (status, challenge) == (401, 'Bearer realm="hpwsn"'), (path, body, found)
        assert await export(node) == before
        path, body = LIFTING[0]
        status, found, _ = await post(node, path, body, shows(node))
        assert status == 200, found


@pytest.mark.parametrize(("path", "body"), [LIFTING[0], LIFTING[7], LIFTING[15]])
async def test_the_token_allows_it_and_its_undo_is_free_where_it_only_adds_the_mark(
    path: str, body: Any, tmp_path: Path
) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        before = await export(node)
        status, found, _ = await post(node, path, body, shows(node))
        assert status == 200, found
        assert await export(node) != before
        moves = any(each["op"] == "move" for each in found["undo"])
        status, found, _ = await post(node, CHANGES, changes(*found["undo"]), shows(node) if moves else None)
        assert status == 200, found
        assert await export(node) == before


async def test_a_mark_is_added_freely_and_its_undo_needs_the_token(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        made = await change(node, see("U", "internal"), {**see("V:W", "internal"), "op": "add"})
        await change(
            node,
            {"op": "set", "topic": "T:SECRET", "description": "plates"},
            {"op": "add", "topic": "T:SECRET:NEW"},
            move("T:SECRET:LANE", "T:SECRET:NEW:LANE"),
            {"op": "remove", "topic": "T:SECRET:NEW"},
        )
        status, found, challenge = await post(node, CHANGES, changes(*made["undo"]))
        assert (status, challenge) == (401, 'Bearer realm="hpwsn"'), found
        status, found, _ = await post(node, CHANGES, changes(*made["undo"]), shows(node))
        assert status == 200, found
        assert (await export(node)).count("internal") == 1


async def test_an_empty_export_removes_all_topics_and_tells_which(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        empty = {form: await export(node, form) for form in ("toml", "ldif")}
        for form, text in empty.items():
            await change(node, {"op": "add", "topic": "A:B"})
            body = {"format": form, "text": text}
            status, found, _ = await post(node, MERGE, body)
            assert (status, found["error"][:26]) == (400, "text: it has no topics in "), found
            for path in (f"{REPLACE}&dry_run=true", REPLACE):
                status, found, _ = await post(node, path, body)
                assert (status, found["totals"]) == (200, {"added": 0, "changed": 0, "removed": 2})
                assert found["effect"]["topics"] == 2
            assert await export(node, form) == text

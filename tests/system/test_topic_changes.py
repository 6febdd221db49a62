"""Editing the topics of a running node over HTTP: changes, dry runs, undo, conflicts, export and import."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from hpwsn.door.rest.topics.topic_files import LONGEST_TEXT
from hpwsn.topics.editing.topic_edit import MOST_EDITS
from hpwsn.topics.tree.topic_toml import parse_document
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.internal_topics import get
from tests.internal_topics import post as publish
from tests.patience import eventually
from tests.raw_soap import call, notify, send, subscribe
from tests.slapd import ADMIN, BASE, Slapd, topic
from tests.topic_edits import change, edit, export, post

START = """\
[topics.ALL]
description = "Everything"
[topics.ALL.ALARM]
routing = "tcp"
[topics.ALL.ALARM.FIRE]
description = "at once"
[topics.ALL.NEWS]
"""


def editable(slapd: Slapd) -> tuple[str, ...]:
    settings = {"topics.edit_bind_dn": ADMIN, "topics.edit_password_file": slapd.password_file}
    return ("--topics", slapd.url, *(f"--set={key}={value}" for key, value in settings.items()))


async def session(node: NodeProcess) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await send(f"{node.base}/session", b"", method="GET")).body)["topics"]
    return found


async def test_a_newcomer_declares_a_topic_and_the_file_appears_with_the_first_edit(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        file = node.data / "topics.toml"
        assert await session(node) == {"source": "file", "editable": True, "why_not": None}
        await change(node, {"op": "add", "topic": "ALL:ALARM", "description": "loud"})
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
        assert [str(each.topic) for each in parse_document(file.read_text()).declarations] == [
            "ALL",
            "ALL:ALARM",
        ]
        await publish(node, "anything:else", {"n": 1})


@pytest.mark.parametrize("kind", ["file", "ldap"])
async def test_a_change_shows_at_once_and_its_undo_restores_everything(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    settings = ("--topics", str(file)) if kind == "file" else editable(request.getfixturevalue("slapd"))
    with NodeProcess(tmp_path / "data", *settings) as node:
        if kind == "ldap":
            status, found = await post(node, "/topics/import?mode=replace", {"format": "toml", "text": START})
            assert status == 200, found
        before = await export(node)
        first = await change(
            node,
            {"op": "add", "topic": "ALL:SPORT:GOLF", "description": "tee", "routing": "udp"},
            {"op": "set", "topic": "ALL", "description": None, "visibility": "public"},
            {"op": "move", "topic": "ALL:ALARM", "to": "DANGER"},
            {"op": "remove", "topic": "ALL:NEWS"},
        )
        assert set(first) == {"revision", "undo", "effect"}
        assert first["effect"] == {"topics": 6, "subscriptions": 0, "waiting": 0}
        for each, wanted in (
            ("ALL:SPORT:GOLF", 202),
            ("DANGER:FIRE", 202),
            ("ALL:ALARM", 500),
            ("ALL:NEWS", 500),
        ):
            assert (await call(node.url, notify(each, "<n>x</n>"))).status == wanted
        after = await export(node)
        assert 'description = "tee"' in after
        assert "Everything" not in after
        second = await change(node, *first["undo"])
        assert await export(node) == before
        assert second["revision"] != first["revision"]
        await change(node, *second["undo"])
        assert await export(node) == after


async def test_a_dry_run_tells_the_effect_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    async with Consumer(lambda _: 500) as consumer:
        with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
            for each in ("ALL:ALARM:FIRE", "ALL:ALARM", "ALL", "ALL:NEWS"):
                assert (await call(node.url, subscribe(f"{consumer.url}?{each}", each))).status == 200
            await call(node.url, notify("ALL:ALARM:FIRE", "<n>x</n>"))
            removal = {"op": "remove", "topic": "ALL:ALARM"}
            status, found = await edit(node, removal, dry_run=True)
            assert (status, set(found), found["undo"]) == (200, {"revision", "undo", "effect"}, [])
            assert found["effect"] == {"topics": 2, "subscriptions": 2, "waiting": 2}
            hidden = {"op": "set", "topic": "ALL:ALARM", "visibility": "internal"}
            _, found = await edit(node, hidden, dry_run=True)
            assert found["effect"] == {"topics": 1, "subscriptions": 2, "waiting": 2}
            moved = {"op": "move", "topic": "ALL:ALARM", "to": "Z"}
            _, found = await edit(node, moved, {"op": "add", "topic": "ALL:ALARM"}, dry_run=True)
            assert found["effect"] == {"topics": 3, "subscriptions": 1, "waiting": 1}
            assert file.read_text() == START
            assert (await change(node, removal))["effect"]["subscriptions"] == 2


async def test_an_open_node_tells_the_effect_too(tmp_path: Path) -> None:
    async with Consumer() as consumer:
        with NodeProcess(tmp_path / "data") as node:
            await change(node, {"op": "add", "topic": "ALL:ALARM"})
            assert (await call(node.url, subscribe(consumer.url, "ALL:ALARM"))).status == 200
            _, found = await edit(node, {"op": "remove", "topic": "ALL:ALARM"}, dry_run=True)
            assert found["effect"] == {"topics": 1, "subscriptions": 1, "waiting": 0}


async def test_the_list_of_topics_has_the_etags_and_the_revision(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        await publish(node, "open", {"n": 1})
        made = await change(node, {"op": "add", "topic": "A", "description": "old"})
        listed = json.loads((await get(node, "/topics"))[2])
        assert listed["revision"] == made["revision"]
        assert {each["topic"]: each["etag"] for each in listed["items"]} == {
            "A": made["undo"][0]["etag"],
            "open": None,
        }
        again = await change(
            node, {"op": "set", "topic": "A", "etag": listed["items"][0]["etag"], "routing": "udp"}
        )
        listed = json.loads((await get(node, "/topics"))[2])
        assert (listed["revision"], listed["items"][0]["routing"]) == (again["revision"], "udp")


async def test_two_editors_at_once_on_a_server_and_one_gets_base_and_theirs(
    slapd: Slapd, tmp_path: Path
) -> None:
    with (
        NodeProcess(tmp_path / "one", *editable(slapd)) as one,
        NodeProcess(tmp_path / "two", *editable(slapd)) as two,
    ):
        made = await change(one, {"op": "add", "topic": "RACE", "description": "start"})
        etag = made["undo"][0]["etag"]

        async def known() -> bool:
            return "RACE" in await export(two)

        await eventually(known)
        answers = await asyncio.gather(
            edit(one, {"op": "set", "topic": "RACE", "description": "one", "etag": etag}),
            edit(two, {"op": "set", "topic": "RACE", "description": "two", "etag": etag}),
        )
        assert sorted(status for status, _ in answers) == [200, 409]
        winner = "one" if answers[0][0] == 200 else "two"
        (lost,) = (found for status, found in answers if status == 409)
        assert "topic RACE was changed by others" in lost["error"]
        (conflict,) = lost["conflicts"]
        assert set(conflict) == {"topic", "error", "base", "theirs"}
        assert (conflict["topic"], conflict["base"]["description"], conflict["base"]["etag"]) == (
            "RACE",
            "start",
            etag,
        )
        assert conflict["theirs"]["description"] == winner
        # With the etag of what is there now, the loser can decide.
        loser = two if winner == "one" else one
        await change(
            loser, {"op": "set", "topic": "RACE", "description": "both", "etag": conflict["theirs"]["etag"]}
        )


async def test_a_server_that_refuses_a_later_change_keeps_nothing_of_the_earlier_ones(
    slapd: Slapd, tmp_path: Path
) -> None:
    """An entry of another class below a topic: the topic cannot be deleted, and the node does not see why."""
    slapd.add(
        topic("BLOCKED") + f"dn: ou=foreign,cn=BLOCKED,{BASE}\nobjectClass: organizationalUnit\nou: foreign\n"
    )
    with NodeProcess(tmp_path / "data", *editable(slapd)) as node:
        before = await export(node)
        status, found = await edit(
            node,
            {"op": "add", "topic": "NEW:ONE"},
            {"op": "set", "topic": "ALL:ALARM", "description": "changed"},
            {"op": "set", "topic": "ALL:ALARM", "description": "twice"},
            {"op": "move", "topic": "ALL:ALARM", "to": "NEW:ALARM"},
            {"op": "remove", "topic": "BLOCKED"},
        )
        assert status == 503
        assert "this was change 6 of 6, and those before it are undone" in found["error"]
        loaded = {str(each.topic): each.description for each in slapd.directory.load()}
        assert "ALL:ALARM" in loaded
        assert loaded["ALL:ALARM"] not in ("changed", "twice")
        assert not [each for each in loaded if each.startswith("NEW")]
        await change(node, {"op": "add", "topic": "AFTER"})
        await change(node, {"op": "remove", "topic": "AFTER"})
        assert await export(node) == before
    slapd.delete(f"cn=BLOCKED,{BASE}", recursive=True)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (("--set", "topics.edit=never"), 'topics.edit is "never"; set it to "auto"'),
        (("--topics", "LDAP"), "set topics.edit_bind_dn and topics.edit_password_file"),
    ],
)
async def test_topics_that_are_only_read_say_why(
    settings: tuple[str, ...], why: str, tmp_path: Path, slapd: Slapd
) -> None:
    arguments = [slapd.url if each == "LDAP" else each for each in settings]
    with NodeProcess(tmp_path / "data", *arguments) as node:
        state = await session(node)
        assert state["editable"] is False
        assert why in state["why_not"]
        for status, found in (
            await edit(node, {"op": "add", "topic": "A"}),
            await edit(node, {"op": "add", "topic": "A"}, dry_run=True),
            await post(node, "/topics/import", {"text": "[topics.A]"}),
        ):
            assert (status, found) == (403, {"error": state["why_not"]})
        await export(node)


async def test_bad_changes_are_refused_with_every_reason_and_nothing_is_written(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        status, found = await edit(
            node,
            {"op": "add", "topic": "fine"},
            {"op": "add", "topic": "a//b"},
            {"op": "add", "topic": "A", "routing": "pigeon"},
            {"op": "add", "topic": "A", "rooting": "udp"},
            {"op": "add", "topic": 5},
            {"topic": "A"},
            "add",
            {"op": "remove", "topic": "A", "below": -1},
        )
        assert status == 400
        assert [each.split(":")[0] for each in found["problems"]] == [f"changes[{n}]" for n in range(1, 8)]
        assert "a//b" in found["problems"][0]
        assert "it must be udp or tcp, or null" in found["problems"][1]
        assert "the field 'rooting' is unknown" in found["problems"][2]
        assert found["error"] == f"{found['problems'][0]}; and 6 more"
        for body in ({}, {"changes": []}, {"changes": {}}, {"changes": [], "more": 1}):
            assert (await post(node, "/topics/changes", body))[0] == 400
        for query in ("?dry_run=yes", "?dryrun=true"):
            assert (await post(node, f"/topics/changes{query}", {"changes": [{}]}))[0] == 400
        many = [{"op": "add", "topic": f"n{number}"} for number in range(MOST_EDITS + 1)]
        status, found = await edit(node, *many)
        assert (status, f"exceed the limit of {MOST_EDITS}" in found["error"]) == (400, True)
        too_large = b'{"changes": [' + b" " * (16 << 20) + b"]}"
        assert (await send(f"{node.base}/topics/changes", too_large, "application/json")).status == 413
        assert not (node.data / "topics.toml").exists()
        assert len((await change(node, *many[:-1]))["undo"]) == MOST_EDITS


async def test_conflicts_without_an_etag_name_what_is_there(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        await change(node, {"op": "add", "topic": "A", "description": "old"})
        status, found = await edit(
            node,
            {"op": "add", "topic": "A"},
            {"op": "set", "topic": "B"},
            {"op": "move", "topic": "A", "to": "A:C"},
        )
        assert status == 400
        status, found = await edit(
            node, {"op": "add", "topic": "A"}, {"op": "set", "topic": "B", "etag": "*"}
        )
        assert status == 409
        first, second = found["conflicts"]
        assert (first["base"], first["theirs"]["description"]) == (None, "old")
        assert (second["base"], second["theirs"]) == (None, None)


async def test_every_answered_edit_outlives_a_kill(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        for number in range(4):
            await change(node, {"op": "add", "topic": f"A:n{number}", "description": f"{number}"})
            etag = (await change(node, {"op": "set", "topic": "A", "description": f"{number}"}))["undo"][0][
                "etag"
            ]
            node.kill()
            node.start()
            text = await export(node)
            assert all(f"[topics.A.n{each}]" in text for each in range(number + 1))
            # The etag is that of the content, so an editor goes on after the restart.
            await change(node, {"op": "set", "topic": "A", "routing": "tcp", "etag": etag})


async def test_a_file_edited_by_hand_beside_the_node_conflicts_only_in_its_own_topic(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        undo = (await change(node, {"op": "set", "topic": "ALL", "description": "by the node"}))["undo"]
        file.write_text(file.read_text().replace("at once", "by hand") + "\n[topics.HAND]\n")
        second = await change(node, {"op": "set", "topic": "ALL:NEWS", "description": "by the node"})
        assert "by hand" in file.read_text()
        assert "[topics.HAND]" in await export(node)
        file.write_text(file.read_text().replace("by the node", "by hand"))
        status, found = await edit(node, *undo)
        assert (status, found["conflicts"][0]["theirs"]["description"]) == (409, "by hand")
        assert found["conflicts"][0]["base"]["description"] == "by the node"
        assert (await edit(node, *second["undo"]))[0] == 409
        file.write_text("[topics")
        status, found = await edit(node, {"op": "add", "topic": "A"})
        assert (status, "not valid TOML" in found["error"]) == (503, True)
        assert file.read_text() == "[topics"


@pytest.mark.parametrize("place", ["given", "data"])
async def test_an_edit_does_not_replace_a_file_that_has_disappeared(place: str, tmp_path: Path) -> None:
    """A new file with one topic would remove all others from the running node."""
    file = tmp_path / "topics.toml" if place == "given" else tmp_path / "data" / "topics.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(START)
    settings = ("--topics", str(file)) if place == "given" else ()
    with NodeProcess(tmp_path / "data", *settings) as node:
        before = await export(node)
        file.unlink()
        status, found = await edit(node, {"op": "add", "topic": "NEW"})
        assert (status, "there is no such file" in found["error"]) == (503, True)
        assert not file.exists()
        assert await export(node) == before
        file.write_text(before)
        await change(node, {"op": "add", "topic": "NEW"})
        assert 'description = "at once"' in file.read_text()


async def test_a_topic_that_becomes_internal_is_internal_in_the_next_request(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data") as node:
        await publish(node, "traffic:anpr:lane", {"vid": 1})
        await change(node, {"op": "add", "topic": "traffic:anpr", "visibility": "internal"})
        for path in ("traffic:anpr", "traffic:anpr:lane", "traffic:anpr:new"):
            assert (await get(node, f"/topics/{path}/events"))[0] == 401


# Export and import


async def test_an_export_is_the_same_after_it_is_imported_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    with (
        NodeProcess(tmp_path / "one", "--topics", str(file)) as one,
        NodeProcess(tmp_path / "two") as two,
    ):
        for form in ("toml", "ldif"):
            text = await export(one, form)
            status, found = await post(two, "/topics/import?mode=replace", {"format": form, "text": text})
            assert status == 200, found
            assert set(found) == {"revision", "added", "changed", "removed", "totals", "undo", "effect"}
            assert found["totals"] == {"added": 4, "changed": 0, "removed": 0}
            assert found["added"][0] == {
                "topic": "ALL",
                "description": "Everything",
                "routing": None,
                "visibility": None,
            }
            assert await export(two, form) == text
            await change(two, *found["undo"])
            assert "ALL" not in (await export(two)).partition("\n")[2]
        status, headers, body = await get(one, "/topics/export", headers={"Accept": "text/plain"})
        assert (status, body.decode()) == (200, await export(one))
        assert "topics.toml" in headers["Content-Disposition"]


async def test_an_import_merges_or_replaces_and_a_dry_run_only_compares(tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(START)
    new = '[topics.ALL]\nrouting = "udp"\n[topics.MORE]\n'
    with NodeProcess(tmp_path / "data", "--topics", str(file)) as node:
        before = await export(node)
        for mode, removed in (("merge", 0), ("replace", 3)):
            path, body = f"/topics/import?mode={mode}", {"format": "toml", "text": new}
            for dry_run in (True, False):
                status, found = await post(node, f"{path}&dry_run={str(dry_run).lower()}", body)
                assert (status, found["totals"]) == (200, {"added": 1, "changed": 1, "removed": removed})
                (changed,) = found["changed"]
                assert changed["before"]["description"] == "Everything"
                assert changed["after"]["description"] == ("Everything" if mode == "merge" else "")
                assert (await export(node) == before) is dry_run
            await change(node, *found["undo"])
            assert await export(node) == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": "[topics\n"}, "(at line 1, column 8)"),
        ({"text": '[topics.A]\nrooting = "udp"'}, "topics.A.rooting"),
        ({"text": "dn: cn=A\nnonsense\n", "format": "ldif"}, "line 2"),
        ({"text": ""}, "it has no topics in the format toml"),
        ({"text": 5}, "give the topics as a text"),
        ({"text": f"{'a.' * 10_000}a = 1"}, "line 1: a key has more than 66 parts"),
        ({"text": f"a = {'1' * 4400}"}, "a value cannot be read"),
        ({"text": "#" * (LONGEST_TEXT + 1)}, f"the limit is {LONGEST_TEXT}"),
        ({"text": "#" * LONGEST_TEXT}, "it has no topics in the format toml"),
        (
            {"text": "".join(f"[topics.A{number}]\n" for number in range(MOST_EDITS + 1))},
            f"it has more than {MOST_EDITS} topics",
        ),
        ({"text": "dn: cn=A,dc=x\ncn:: ////\n", "format": "ldif"}, "the entry has no objectClass"),
        ({"text": "[topics.A]", "format": "xml"}, "format is 'xml'; give toml or ldif"),
        (
            {"text": '[topics.A]\nvisibility = "internal"\n[topics.A.B]\nvisibility = "public"'},
            "A:B cannot be public",
        ),
    ],
)
async def test_a_bad_import_names_the_place_and_changes_nothing(
    body: Any, words: str, tmp_path: Path, slapd: Slapd
) -> None:
    with NodeProcess(tmp_path / "data") as node:
        status, found = await post(node, "/topics/import", body)
        assert (status, words in found["error"]) == (400, True), found
        assert not (node.data / "topics.toml").exists()


async def test_ten_thousand_topics_are_imported_edited_and_listed_in_bounds(tmp_path: Path) -> None:
    lines = [f'[topics.area{n % 100}.place{n}]\ndescription = "place {n}"\n' for n in range(10_000)]
    with NodeProcess(tmp_path / "data") as node:
        status, found = await post(node, "/topics/import", {"text": "".join(lines)})
        assert (status, found["totals"]["added"], len(found["added"])) == (200, 10_100, 1000)
        found = await change(node, {"op": "remove", "topic": "area7"})
        assert (found["effect"]["topics"], len(found["undo"])) == (101, 101)
        await change(node, *found["undo"])
        moved = await change(node, {"op": "move", "topic": "area8", "to": "moved:area8"})
        assert (moved["effect"]["topics"], len(moved["undo"])) == (102, 2)
        assert (await export(node)).count("[topics.") == 10_101

"""A directory that is killed, away at the start, unwilling, or behind TLS: the node makes the best of it."""

import asyncio
import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.harness import NodeProcess
from tests.patience import PATIENCE, eventually
from tests.raw_soap import call, notify, send
from tests.slapd import ADMIN, BASE, Slapd, topic

FAST = ("--set", "topics.retry_max=0.2", "--set", f"topics.start_wait={PATIENCE}")


async def publishes(node: NodeProcess, on: str) -> bool:
    return (await call(node.url, notify(on, "<n>x</n>"))).status == 202


async def refuses(node: NodeProcess, on: str) -> bool:
    return not await publishes(node, on)


async def status(node: NodeProcess) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await send(f"{node.base}/status", b"", method="GET")).body)
    return found


async def readiness(node: NodeProcess) -> tuple[int, str]:
    reply = await send(f"{node.base}/readyz", b"", method="GET")
    return reply.status, " ".join(json.loads(reply.body)["problems"])


async def is_ready(node: NodeProcess) -> bool:
    return (await readiness(node))[0] == 200


async def test_a_killed_server_leaves_the_tree_and_is_followed_again_when_it_is_back(
    slapd: Slapd, tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        await asyncio.to_thread(slapd.kill)

        async def noticed() -> bool:
            return not (await status(node))["directory"]["connected"]

        await eventually(noticed)
        assert await publishes(node, "ALL:ALARM:FIRE")
        warnings = (await status(node))["directory"]["warnings"]
        assert "cannot reach it" in warnings[0]
        assert "the topics do not change" in warnings[0]
        assert await is_ready(node)
        await asyncio.to_thread(slapd.start)
        # Changed before the node can have noticed that it is back, or after: it must not matter.
        slapd.add(topic("NEW", "ALL"))
        slapd.delete(f"cn=FIRE,cn=ALARM,cn=ALL,{BASE}")
        await eventually(lambda: publishes(node, "ALL:NEW"))
        await eventually(lambda: refuses(node, "ALL:ALARM:FIRE"))
        slapd.add(topic("NEWER", "ALL"))
        await eventually(lambda: publishes(node, "ALL:NEWER"))
        assert "the topic directory is reachable again" in node.log()


async def test_what_changed_while_the_node_could_not_see_it_is_found_by_comparison(
    slapd: Slapd, tmp_path: Path
) -> None:
    elsewhere = Slapd(slapd.folder)
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        await asyncio.to_thread(slapd.kill)
        with elsewhere:
            elsewhere.rename(f"cn=ALARM,cn=ALL,{BASE}", "cn=ALERT")
            elsewhere.delete(f"cn=STATE,cn=ALL,{BASE}")
        assert await publishes(node, "ALL:STATE")
        await asyncio.to_thread(slapd.start)
        await eventually(lambda: publishes(node, "ALL:ALERT:SMOKE"))
        assert await refuses(node, "ALL:ALARM:SMOKE")
        assert await refuses(node, "ALL:STATE")


async def test_without_the_server_a_node_starts_with_the_last_tree_and_says_that_it_is_not_ready(
    slapd: Slapd, tmp_path: Path
) -> None:
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        slapd.add(topic("NEW", "ALL"))
        await eventually(lambda: publishes(node, "ALL:NEW"))
        assert await asyncio.to_thread(node.terminate) == 0
    slapd.kill()
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        assert await publishes(node, "ALL:NEW")
        assert await refuses(node, "OTHER")
        code, why = await readiness(node)
        assert code == 503
        assert "cannot reach it" in why
        assert "the saved topics are in use" in why
        await asyncio.to_thread(slapd.start)
        slapd.delete(f"cn=NEW,cn=ALL,{BASE}")
        await eventually(lambda: is_ready(node))
        await eventually(lambda: refuses(node, "ALL:NEW"))


async def test_a_node_that_has_never_seen_the_server_starts_without_topics_and_gets_them(
    slapd: Slapd, tmp_path: Path
) -> None:
    slapd.kill()
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        assert await refuses(node, "ALL")
        code, why = await readiness(node)
        assert code == 503
        assert "there are no topics" in why
        await asyncio.to_thread(slapd.start)
        await eventually(lambda: publishes(node, "ALL"))
        assert await is_ready(node)


async def test_a_damaged_or_foreign_saved_tree_counts_as_none(slapd: Slapd, tmp_path: Path) -> None:
    slapd.kill()
    (tmp_path / "data").mkdir()
    saved = tmp_path / "data" / "topics.json"
    saved.write_text('{"version": 1, "directory": "ou=topics,dc=hpwsn", "topics": [["A::B", ""')
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        assert "cannot be used" in node.log()
        assert "there are no topics" in (await readiness(node))[1]
    saved.write_text('{"version": 1, "directory": "ou=other", "topics": [["A", "", null, null]]}')
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        assert await refuses(node, "A")


async def test_a_wrong_password_or_base_is_said_and_mended_without_a_restart(
    slapd: Slapd, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("wrong\n")
    bind = ("--set", f"topics.bind_dn={ADMIN}", "--set", f"topics.password_file={password}")
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST, *bind) as node:
        assert "the bind DN or its password is wrong" in (await readiness(node))[1]
        password.write_text("admin\n")
        await eventually(lambda: is_ready(node))
    other = slapd.url.replace("ou=topics", "ou=others")
    with NodeProcess(tmp_path / "data", "--topics", other, *FAST) as node:
        assert "there is no such entry" in (await readiness(node))[1]
        slapd.add("dn: ou=others,dc=hpwsn\nobjectClass: organizationalUnit\nou: others\n")
        await eventually(lambda: is_ready(node))


@pytest.mark.parametrize("way", ["ldaps", "start_tls"])
async def test_tls_is_checked_against_the_ca(way: str, tmp_path: Path) -> None:
    with Slapd(tmp_path / "slapd", "--example", "--tls") as slapd:
        url = slapd.secure_url if way == "ldaps" else slapd.url
        tls = ("--set", "topics.start_tls=true") if way == "start_tls" else ()
        ca = ("--set", f"topics.ca_file={slapd.folder / 'tls' / 'ca.pem'}")
        with NodeProcess(tmp_path / "data", "--topics", url, *FAST, *tls, *ca) as node:
            assert await is_ready(node)
            slapd.add(topic("NEW", "ALL"))
            await eventually(lambda: publishes(node, "ALL:NEW"))
        with NodeProcess(tmp_path / "stranger", "--topics", url, *FAST, *tls) as node:
            code, why = await readiness(node)
            assert code == 503
            assert "TLS" in why


async def test_a_server_that_reports_no_changes_is_read_again_and_again(tmp_path: Path) -> None:
    with Slapd(tmp_path / "slapd", "--example", "--no-syncprov") as slapd:
        poll = ("--set", "topics.poll=0.1")
        with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST, *poll) as node:
            slapd.add(topic("NEW", "ALL"))
            await eventually(lambda: publishes(node, "ALL:NEW"))
            slapd.delete(f"cn=NEW,cn=ALL,{BASE}")
            await eventually(lambda: refuses(node, "ALL:NEW"))
            assert await is_ready(node)


async def test_a_server_that_sends_too_few_entries_is_a_problem_and_no_smaller_tree(tmp_path: Path) -> None:
    with (
        Slapd(tmp_path / "slapd", "--example", "--read-limit", "3") as slapd,
        NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node,
    ):
        assert "raise the server's size limit" in (await readiness(node))[1]


async def test_a_node_that_may_see_the_topics_and_nothing_else_follows_them(tmp_path: Path) -> None:
    with (
        Slapd(tmp_path / "slapd", "--example", "--hide-suffix") as slapd,
        NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node,
    ):
        assert await is_ready(node)
        slapd.add(topic("NEW", "ALL"))
        await eventually(lambda: publishes(node, "ALL:NEW"))
        slapd.delete(f"cn=NEW,cn=ALL,{BASE}", f"cn=FIRE,cn=ALARM,cn=ALL,{BASE}")
        await eventually(lambda: refuses(node, "ALL:ALARM:FIRE"))
        assert await refuses(node, "ALL:NEW")


async def test_a_node_ends_in_time_although_its_directory_is_silent(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ldap://127.0.0.1:{silent.getsockname()[1]}/{BASE}"
        # It would wait for an answer for longer than a test waits.
        endless = ("--set", "topics.timeout=1h", "--set", "topics.start_wait=0.5")
        with NodeProcess(tmp_path / "data", "--topics", url, *endless) as node:
            assert "has not answered yet; there are no topics" in (await readiness(node))[1]
            assert await asyncio.to_thread(node.terminate) == 0


async def test_ten_thousand_topics_are_there_at_the_start_and_move_in_one_step(
    slapd: Slapd, tmp_path: Path
) -> None:
    slapd.close()
    entries = "".join(topic(f"T{number}", "MANY") for number in range(10_000))
    (tmp_path / "many.ldif").write_text(topic("MANY") + entries)
    fill = ["/usr/sbin/slapadd", "-q", "-f", slapd.folder / "slapd.conf", "-l", tmp_path / "many.ldif"]
    await asyncio.to_thread(subprocess.run, fill, check=True, capture_output=True)
    slapd.start()
    with NodeProcess(tmp_path / "data", "--topics", slapd.url, *FAST) as node:
        assert await publishes(node, "MANY:T9999")
        slapd.rename(f"cn=MANY,{BASE}", "cn=MORE")
        await eventually(lambda: publishes(node, "MORE:T9999"))

        async def moved() -> bool:
            return bool((await status(node))["topics"] == 10_007)

        await eventually(moved)
        assert await refuses(node, "MANY")

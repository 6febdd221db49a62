"""Carriers between real nodes, with the commands of a user: what is given, held, repeated and refused."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from hpwsn.dtn.bundles.bundle import Bundle, CarriedEvent, Known, Origin
from hpwsn.dtn.bundles.bundle_format import encode_bundle, parse_bundle
from tests.harness import hpwsn
from tests.islands import KEY, Island, collect, deliver, outcome, refused

TOPIC = "weather"


@pytest.fixture
def islands(tmp_path: Path) -> Iterator[tuple[Island, Island, Island]]:
    """Three nodes."""
    nodes = [Island(tmp_path, name) for name in ("valley", "summit", "coast")]
    try:
        for node in nodes:
            node.start()
        yield nodes[0], nodes[1], nodes[2]
    finally:
        for node in nodes:
            node.close()


Islands = tuple[Island, Island, Island]


def opened(file: Path) -> Bundle:
    """A bundle that a node made."""
    return parse_bundle(file.read_bytes(), KEY.encode())


def test_an_event_survives_several_hops_and_is_published_once(islands: Islands, tmp_path: Path) -> None:
    valley, summit, coast = islands
    valley.publish(TOPIC, 1, 2, 3)
    first, second = tmp_path / "first", tmp_path / "second"
    found = collect(valley, first, "summit")
    assert found == {"events": 3, "bytes": first.stat().st_size, "left": 0}
    assert deliver(summit, first) == outcome(published=3)
    summit.publish(TOPIC, 4)
    assert collect(summit, second, "coast")["events"] == 4
    assert deliver(coast, second) == outcome(published=4)
    assert deliver(coast, first) == outcome(repeated=3)
    assert summit.values(TOPIC) == coast.values(TOPIC) == [1, 2, 3, 4]
    assert valley.values(TOPIC) == [1, 2, 3]


def test_a_bundle_has_what_the_node_lacks_and_the_carrier_was_not_given(
    islands: Islands, tmp_path: Path
) -> None:
    valley, summit, _ = islands
    file, back = tmp_path / "file", tmp_path / "back"
    valley.publish(TOPIC, 1, 2)
    assert collect(valley, file, "summit", "--carrier", "ranger")["events"] == 2
    assert collect(valley, back, "summit", "--carrier", "ranger")["events"] == 0
    assert collect(valley, back, "summit", "--carrier", "ranger", "--again")["events"] == 2
    assert collect(valley, back, "summit", "--carrier", "herder")["events"] == 2
    assert collect(valley, back, "coast", "--carrier", "ranger")["events"] == 2
    assert collect(valley, back, "summit")["events"] == 2
    assert deliver(summit, file) == outcome(published=2)
    summit.publish(TOPIC, 3)
    # The bundle of the other direction says what the summit has.
    assert collect(summit, back, "valley")["events"] == 1
    assert deliver(valley, back) == outcome(published=1)
    assert collect(valley, file, "summit", "--again")["events"] == 0
    valley.publish(TOPIC, 4)
    assert collect(valley, file, "summit")["events"] == 1


def test_events_ahead_of_a_gap_are_held_until_it_is_filled_even_by_a_restart(
    islands: Islands, tmp_path: Path
) -> None:
    valley, summit, _ = islands
    bundles = [tmp_path / f"bundle-{number}" for number in range(3)]
    for number, file in enumerate(bundles):
        valley.publish(TOPIC, 2 * number, 2 * number + 1)
        collect(valley, file, "summit", "--carrier", "ranger")
    assert deliver(summit, bundles[2]) == outcome(held=2)
    assert deliver(summit, bundles[2]) == outcome(held=2)
    assert summit.carried["held"] == 2
    summit.kill()
    summit.start()
    assert summit.carried["held"] == 2
    assert deliver(summit, bundles[1]) == outcome(held=2)
    assert summit.values(TOPIC) == []
    assert deliver(summit, bundles[0]) == outcome(published=6)
    assert summit.values(TOPIC) == [0, 1, 2, 3, 4, 5]
    assert summit.carried["held"] == summit.carried["held_bytes"] == 0
    summit.terminate()
    summit.start()
    for file in bundles:
        assert deliver(summit, file) == outcome(repeated=2)
    assert summit.values(TOPIC) == [0, 1, 2, 3, 4, 5]


def test_after_the_wait_for_a_gap_nothing_is_lost(tmp_path: Path) -> None:
    lost, found, again = tmp_path / "lost", tmp_path / "found", tmp_path / "again"
    with Island(tmp_path, "valley") as valley, Island(tmp_path, "summit", gap_wait="0.1 s") as summit:
        valley.publish(TOPIC, 1, 2)
        collect(valley, lost, "summit", "--carrier", "ranger")
        valley.publish(TOPIC, 3)
        collect(valley, found, "summit", "--carrier", "ranger")
        assert deliver(summit, found) == outcome(held=1)
        summit.comes_to(held=0, published=1, gaps=1)
        assert summit.values(TOPIC) == [3]
        # The summit says which events it lacks, so that the next carrier brings them.
        collect(summit, again, "valley")
        deliver(valley, again)
        assert collect(valley, again, "summit", "--carrier", "herder")["events"] == 2
        assert deliver(summit, again) == outcome(published=2)
        assert deliver(summit, lost) == outcome(repeated=2)
        assert summit.values(TOPIC) == [3, 1, 2]
        assert summit.carried["gaps"] == 0


def test_the_size_bounds_a_bundle_and_the_oldest_events_go_first(islands: Islands, tmp_path: Path) -> None:
    valley, summit, _ = islands
    for number in range(20):
        valley.publish(TOPIC, {"number": number, "text": "x" * 300})
    file, room, given = tmp_path / "file", 5000, 0
    while given < 20:
        options = ("--carrier", "ranger", "--max-bytes", str(room))
        found = collect(valley, file, "summit", *options)
        given += found["events"]
        assert found["events"] > 0
        assert found["left"] == 20 - given
        assert found["bytes"] == file.stat().st_size <= room
        assert deliver(summit, file) == outcome(published=found["events"])
    assert [value["number"] for value in summit.values(TOPIC)] == list(range(20))


def test_an_event_that_does_not_fit_keeps_back_later_ones_of_its_origin_only(
    islands: Islands, tmp_path: Path
) -> None:
    valley, summit, coast = islands
    summit.publish(TOPIC, "early")
    collect(summit, tmp_path / "early", "valley")
    valley.publish(TOPIC, "x" * 5000, "late")
    deliver(valley, tmp_path / "early")
    found = collect(valley, tmp_path / "file", "coast", "--max-bytes", "2000")
    assert (found["events"], found["left"]) == (1, 2)
    deliver(coast, tmp_path / "file")
    assert coast.values(TOPIC) == ["early"]


def test_a_size_without_room_for_an_empty_bundle_is_an_error(islands: Islands, tmp_path: Path) -> None:
    valley = islands[0]
    file = tmp_path / "file"
    done = hpwsn(
        "dtn", "collect", "--url", valley.url, "--out", str(file), "--to", "summit", "--max-bytes", "50"
    )
    assert done.returncode == 1
    assert "a bundle without events has" in done.stderr
    assert not file.exists()


def test_a_bad_bundle_changes_nothing_and_is_counted(islands: Islands, tmp_path: Path) -> None:
    valley, summit, _ = islands
    valley.publish(TOPIC, 1, 2)
    collect(valley, tmp_path / "good", "summit")
    good = (tmp_path / "good").read_bytes()
    bundle = opened(tmp_path / "good")
    forged = encode_bundle(bundle, b"another key of 16 bytes")
    unreadable = CarriedEvent(bundle.maker, 9, 8, 0, TOPIC, b"\x02 of a later version")
    malformed = Bundle(bundle.maker, "summit", "", bundle.made + 1, events=(*bundle.events, unreadable))
    cases = {
        "damaged": good[:60] + bytes([good[60] ^ 1]) + good[61:],
        "cut": good[:-1],
        "longer": good + b"\0",
        "empty": b"",
        "forged": forged,
        "signed with no key": good[:-32] + sha256(good[:-32]).digest(),
        "another file": b"PK\x03\x04",
        "malformed": encode_bundle(malformed, KEY.encode()),
    }
    for number, (name, data) in enumerate(cases.items(), 1):
        (tmp_path / "bad").write_bytes(data)
        assert "nothing was published" in refused(summit, tmp_path / "bad"), name
        assert summit.carried == {**dict.fromkeys(summit.carried, 0), "refused": number}
    assert summit.values(TOPIC) == []
    assert deliver(summit, tmp_path / "good") == outcome(published=2)


def test_a_carrier_gives_events_of_small_communities_to_nodes_on_its_way(
    islands: Islands, tmp_path: Path
) -> None:
    _, summit, coast = islands
    small, large = Origin("meadow", 1), Origin("town", 1)
    payload = opened_payload(summit, tmp_path)
    events = tuple(CarriedEvent(origin, 1, 0, 0, TOPIC, payload) for origin in (small, large))
    bundle = Bundle(small, "coast", "ranger", 1, {}, {small: 4, large: 5}, {}, events)
    (tmp_path / "file").write_bytes(encode_bundle(bundle, KEY.encode()))
    assert deliver(summit, tmp_path / "file") == {**outcome(published=1), "passed": 1}
    assert deliver(coast, tmp_path / "file") == outcome(published=2)
    # The summit treats what it was given as its own.
    assert collect(summit, tmp_path / "next", "valley")["events"] == 2
    assert opened(tmp_path / "next").sizes[small] == 4


def opened_payload(node: Island, folder: Path) -> bytes:
    """The payload of an event as nodes encode it."""
    node.publish("other", {"of": "an example"})
    collect(node, folder / "example", "nowhere")
    return opened(folder / "example").events[0].payload


def test_nothing_waits_for_events_that_the_maker_does_not_have_any_more(
    islands: Islands, tmp_path: Path
) -> None:
    _, summit, _ = islands
    meadow = Origin("meadow", 1)
    payload = opened_payload(summit, tmp_path)
    event = CarriedEvent(meadow, 9, 8, 0, TOPIC, payload)
    with_floor = Bundle(meadow, "summit", "", 2, floors={meadow: 8}, events=(event,))
    (tmp_path / "file").write_bytes(encode_bundle(with_floor, KEY.encode()))
    assert deliver(summit, tmp_path / "file") == outcome(published=1)
    collect(summit, tmp_path / "has", "meadow")
    assert opened(tmp_path / "has").has[meadow] == Known(9, ((0, 8),))


def test_a_bundle_of_another_node_with_the_same_name_is_refused(islands: Islands, tmp_path: Path) -> None:
    summit = islands[1]
    other = Bundle(Origin("summit", 1), "summit", "", 1)
    (tmp_path / "file").write_bytes(encode_bundle(other, KEY.encode()))
    assert "another node named 'summit'" in refused(summit, tmp_path / "file")


def test_large_transfers_go_in_pieces_and_go_on_where_they_were_broken(
    islands: Islands, tmp_path: Path
) -> None:
    valley, summit, _ = islands
    texts = [str(number) * 900_000 for number in range(3)]
    valley.publish(TOPIC, *texts[:2])
    valley.publish(TOPIC, texts[2])
    file = tmp_path / "file"
    assert collect(valley, file, "summit")["bytes"] > 2_700_000
    data = file.read_bytes()
    digest = sha256(data).hexdigest()
    path = f"/dtn/uploads/{digest}"
    assert summit.ask("PUT", path, data[:1000]).body == {"received": 1000}
    wrong = summit.ask("PUT", path + "?offset=5", b"x")
    assert (wrong.status, wrong.body["error"]) == (409, "the next piece begins at 1000; send it from there")
    assert summit.ask("POST", f"/dtn/deliver?upload={digest}", b"").status == 400
    assert summit.get(path) == {"received": 0}, "an upload that is delivered too early begins again"
    assert summit.ask("PUT", path, data[:1000]).body == {"received": 1000}
    assert deliver(summit, file) == outcome(published=3)
    assert summit.values(TOPIC) == texts
    assert summit.get(path) == {"received": 0}


def test_a_download_that_was_not_ended_gives_the_carrier_nothing(islands: Islands, tmp_path: Path) -> None:
    valley = islands[0]
    valley.publish(TOPIC, 1)
    asked = {"to": "summit", "carrier": "ranger"}
    made = valley.ask("POST", "/dtn/collect", asked).body
    assert valley.ask("POST", "/dtn/collect", asked).body["events"] == 1
    assert valley.ask("POST", f"/dtn/bundles/{made['id']}/taken").status == 200
    assert valley.ask("POST", f"/dtn/bundles/{made['id']}/taken").status == 404
    assert valley.ask("GET", f"/dtn/bundles/{made['id']}").status == 404
    assert valley.ask("POST", "/dtn/collect", asked).body["events"] == 0
    assert collect(valley, tmp_path / "file", "summit", "--carrier", "herder")["events"] == 1


def test_of_too_many_bundles_the_oldest_is_removed(tmp_path: Path) -> None:
    with Island(tmp_path, "valley", bundles_kept=2) as valley:
        made = [valley.ask("POST", "/dtn/collect", {"to": "summit"}).body["id"] for _ in range(3)]
        taken = [valley.ask("POST", f"/dtn/bundles/{id_}/taken").status for id_ in made]
        assert taken == [404, 200, 200]
        assert not list((valley.data / "dtn").iterdir())


def test_no_more_events_are_held_than_allowed(tmp_path: Path) -> None:
    with Island(tmp_path, "valley") as valley, Island(tmp_path, "summit", held_events=2) as summit:
        valley.publish(TOPIC, 0)
        collect(valley, tmp_path / "first", "summit", "--carrier", "ranger")
        valley.publish(TOPIC, 1, 2, 3)
        collect(valley, tmp_path / "second", "summit", "--carrier", "ranger")
        assert deliver(summit, tmp_path / "second") == {**outcome(held=2), "refused": 1}
        assert summit.carried["overflowed"] == 1
        assert deliver(summit, tmp_path / "first") == outcome(published=3)
        assert deliver(summit, tmp_path / "second") == outcome(published=1, repeated=2)
        assert summit.values(TOPIC) == [0, 1, 2, 3]


def test_no_more_origins_are_known_than_allowed(tmp_path: Path) -> None:
    with Island(tmp_path, "summit", origins=1, bundle_events=2) as summit:
        payload = opened_payload(summit, tmp_path)
        events = [CarriedEvent(Origin(name, 1), 1, 0, 0, TOPIC, payload) for name in ("a", "b", "c")]
        bundle = Bundle(Origin("a", 1), "summit", "", 1, events=events[:2])
        (tmp_path / "file").write_bytes(encode_bundle(bundle, KEY.encode()))
        assert deliver(summit, tmp_path / "file") == {**outcome(published=1), "refused": 1}
        more = Bundle(Origin("a", 1), "summit", "", 1, events=events)
        (tmp_path / "file").write_bytes(encode_bundle(more, KEY.encode()))
        assert "3 events, and 2 are accepted" in refused(summit, tmp_path / "file")


def test_publishers_cannot_use_the_ids_of_carried_events(islands: Islands) -> None:
    valley = islands[0]
    id_ = "urn:hpwsn:carried:1:0:1:0:summit"
    found = valley.ask("POST", f"/topics/{TOPIC}/events", {"value": 1}, headers={"Hpwsn-Message-Id": id_})
    assert found.status == 400
    assert "choose another id" in found.body["error"]
    assert valley.values(TOPIC) == []


def test_internal_events_and_those_of_pull_points_stay_at_the_node(tmp_path: Path) -> None:
    topics = tmp_path / "topics.toml"
    topics.write_text('[topics.public]\n[topics.secret]\nvisibility = "internal"\n')
    valley = Island(tmp_path, "valley")
    valley.arguments += (f"--set=topics.url={topics}",)
    with valley:
        token = (valley.data / "job.token").read_text().strip()
        found = valley.ask(
            "POST", "/topics/secret/events", {"value": 1}, headers={"Authorization": f"Bearer {token}"}
        )
        assert found.status == 202, found
        valley.publish("public", 2)
        collect(valley, tmp_path / "file", "summit")
        assert [event.topic for event in opened(tmp_path / "file").events] == ["public"]


def test_without_a_key_there_are_no_carriers(tmp_path: Path) -> None:
    valley = Island(tmp_path, "valley")
    valley.arguments = valley.arguments[:2]
    with valley:
        done = hpwsn("dtn", "collect", "--url", valley.url, "--out", str(tmp_path / "f"), "--to", "summit")
        assert done.returncode == 1
        assert "set dtn.key_file" in done.stderr
        assert "dtn" not in valley.get("/status")


@pytest.mark.parametrize(
    ("key", "status"), [("x" * 15, 1), ("x" * 16, 0), (" \n" + "x" * 15 + " \n", 1), ("x" * 4097, 1)]
)
def test_a_key_has_16_to_4096_bytes(tmp_path: Path, key: str, status: int) -> None:
    file = tmp_path / "key"
    file.write_text(key)
    done = hpwsn("check-config", f"--set=dtn.key_file={file}", f"--set=data.dir={tmp_path / 'data'}")
    assert done.returncode == status, done.stderr
    assert ("write a secret text of 16 to 4096 bytes" in done.stderr) is bool(status)


def test_a_key_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = hpwsn("check-config", f"--set=dtn.key_file={tmp_path / 'none'}")
    assert done.returncode == 1
    assert "cannot be read" in done.stderr


def test_a_file_has_the_documented_form(islands: Islands, tmp_path: Path) -> None:
    valley = islands[0]
    valley.publish(TOPIC, 1)
    collect(valley, tmp_path / "file", "summit")
    data = (tmp_path / "file").read_bytes()
    assert data[:15] == b"HPWSN-BUNDLE-1\n"
    assert data[-32:] == hmac.digest(KEY.encode(), data[:-32], "sha256")


def test_the_answer_without_json_is_one_line(islands: Islands, tmp_path: Path) -> None:
    done = hpwsn("dtn", "collect", "--url", islands[0].url, "--out", str(tmp_path / "f"), "--to", "summit")
    size = (tmp_path / "f").stat().st_size
    assert done.stdout == f"0 events, {size} bytes, 0 left\n"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"to": ""},
        {"to": 1},
        {"to": "x" * 256},
        {"to": "summit", "carrier": ""},
        {"to": "summit", "max_bytes": 0},
        {"to": "summit", "max_bytes": True},
        {"to": "summit", "again": "yes"},
        {"to": "summit", "more": 1},
    ],
)
def test_a_wrong_field_is_named(one: Island, body: dict[str, object]) -> None:
    found = one.ask("POST", "/dtn/collect", body)
    assert found.status == 400
    assert any(name in found.body["error"] for name in (*body, "to"))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Island]:
    """A node for requests that change nothing."""
    with Island(tmp_path_factory.mktemp("one"), "one") as node:
        yield node


def test_an_upload_has_a_digest_and_an_offset(one: Island) -> None:
    assert one.ask("GET", "/dtn/uploads/abc").status == 400
    assert one.ask("PUT", f"/dtn/uploads/{'a' * 64}?offset=-1", b"x").status == 400
    assert one.ask("PUT", f"/dtn/uploads/{'a' * 64}", b"x" * ((1 << 20) + 1)).status == 413
    assert one.get(f"/dtn/uploads/{'a' * 64}") == {"received": 0}


def test_a_bundle_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with Island(tmp_path, "summit", bundle_bytes="64 KiB") as summit:
        assert summit.ask("POST", "/dtn/deliver", b"x" * ((64 << 10) + 1)).status == 413
        assert summit.ask("POST", "/dtn/deliver", b"x" * (64 << 10)).status == 400
        path = f"/dtn/uploads/{'a' * 64}"
        assert summit.ask("PUT", path, b"x" * (64 << 10)).status == 200
        assert summit.ask("PUT", f"{path}?offset={64 << 10}", b"x").status == 409


def test_every_answer_fits_the_contract(islands: Islands) -> None:
    valley = islands[0]
    paths = valley.get("/openapi.json")["paths"]
    assert {path for path in paths if path.startswith("/dtn/")} == {
        "/dtn/collect",
        "/dtn/bundles/{id}",
        "/dtn/bundles/{id}/taken",
        "/dtn/deliver",
        "/dtn/uploads/{digest}",
    }
    assert json.dumps(paths["/dtn/collect"])

"""A node on a real ActiveMQ: away, killed, stopped, failed over to, shared, and closed to strangers."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from hpwsn_client import SyncClient, SyncReceiver
from tests.activemq import ActiveMQ, BackedNode
from tests.harness import environment
from tests.patience import PATIENCE, until

# A Java machine takes its time to start where others want the processors too.

QUICK = ("--set", "backbone.heartbeat=2")


class Load:
    """Publishers in threads; each numbers its events, and notes those that were answered with 202."""

    def __init__(self, node: BackedNode, publishers: int = 4) -> None:
        self._node = node
        self._over = threading.Event()
        self.accepted: list[list[int]] = [[] for _ in range(publishers)]
        self._unknown: list[set[int]] = [set() for _ in range(publishers)]
        self._threads = [threading.Thread(target=self._publish, args=(n,)) for n in range(publishers)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _publish(self, publisher: int) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            try:
                self._node.post("load", {"p": publisher, "n": number})
            except (urllib.error.HTTPError, OSError):
                self._unknown[publisher].add(number)
                time.sleep(0.02)  # a pace, not a wait for something
            else:
                self.accepted[publisher].append(number)

    @property
    def total(self) -> int:
        return sum(map(len, self.accepted))

    def wait_for(self, more: int) -> None:
        """Until so many more were accepted."""
        goal = self.total + more
        until(lambda: self.total >= goal)

    def judge(self) -> dict[str, int]:
        """Asserts that nothing accepted is missing, that order was kept and nothing came twice."""
        until(lambda: not self._missing(), lambda: f"missing {self._missing()}\n{self._node.log()}")
        events = self._node.events("load")
        for publisher in range(len(self.accepted)):
            numbers = [event["n"] for event in events if event["p"] == publisher]
            assert numbers == sorted(set(numbers)), f"publisher {publisher}: {numbers}"
            assert set(numbers) <= set(self.accepted[publisher]) | self._unknown[publisher]
        return {"accepted": self.total, "stored": len(events), "unknown": sum(map(len, self._unknown))}

    def _missing(self) -> set[tuple[int, int]]:
        wanted = {(p, n) for p, numbers in enumerate(self.accepted) for n in numbers}
        return wanted - {(event["p"], event["n"]) for event in self._node.events("load")}


@pytest.fixture
def node(activemq: ActiveMQ, tmp_path: Path) -> Iterator[BackedNode]:
    """A node on the ActiveMQ that tests share."""
    with BackedNode(tmp_path / "data", activemq.url) as running:
        running.wait()
        yield running


def test_a_soap_subscriber_gets_what_went_by_activemq_and_figures_say_so(node: BackedNode) -> None:
    with SyncReceiver() as receiver, SyncClient(node.url) as client:
        client.subscribe("A", receiver)
        client.notify("A:B", "<x>1</x>")
        client.notify_many([("A:B", "two"), ("A", "<x>3</x>")])
        got = [receiver.get(PATIENCE).text for _ in range(3)]
    assert got == ["<x>1</x>", "two", "<x>3</x>"]
    assert node.get("/readyz") == {"ready": True, "problems": []}
    assert node.metric("hpwsn_backbone_connected") == 1
    assert node.metric("hpwsn_backbone_frames_total") >= 2
    assert node.metric("hpwsn_backbone_spooled") == 0


def test_a_repeated_message_id_is_stored_once(node: BackedNode) -> None:
    spans = [node.post("A", [{"n": 1}, {"n": 2}], "same") for _ in range(3)]
    assert spans == [{"first": 1, "last": 2}] * 3
    assert node.events("A") == [{"n": 1}, {"n": 2}]


def test_an_activemq_that_is_away_at_the_start_is_waited_for_and_gets_all_in_order(
    own_activemq: ActiveMQ, tmp_path: Path
) -> None:
    with BackedNode(tmp_path / "data", own_activemq.url) as node:
        ready = node.get("/readyz")
        assert not ready["ready"]
        assert f"there is no answer from {own_activemq.place}" in ready["problems"][0]
        assert "correct backbone.url" in ready["problems"][0]
        answers = [node.post("A", {"n": number}) for number in range(30)]
        assert answers == [{"first": None, "last": None}] * 30
        assert node.backbone["spooled"] == 30
        assert node.events("A") == []
        own_activemq.start()
        node.wait()
        assert node.post("A", {"n": 30}) == {"first": 31, "last": 31}
        assert node.events("A") == [{"n": number} for number in range(31)]
        assert node.get("/readyz")["ready"]


def test_the_spool_has_a_limit_and_refuses_beyond_it_without_loss(
    own_activemq: ActiveMQ, tmp_path: Path
) -> None:
    with BackedNode(tmp_path / "data", own_activemq.url, "--set", "backbone.spool_limit=5") as node:
        node.post("A", [{"n": 1}, {"n": 2}, {"n": 3}])
        with pytest.raises(urllib.error.HTTPError) as refused:
            node.post("A", [{"n": 0}, {"n": 0}, {"n": 0}])
        assert refused.value.code == 503
        assert refused.value.headers["Retry-After"]
        assert "backbone.spool_limit = 5" in refused.value.read().decode()
        node.post("A", [{"n": 4}, {"n": 5}])
        with pytest.raises(urllib.error.HTTPError, match="503"):
            node.post("A", {"n": 0})
        own_activemq.start()
        node.wait()
        node.post("A", {"n": 6})
        assert node.events("A") == [{"n": number} for number in range(1, 7)]


def test_the_spool_has_a_limit_in_bytes_too(own_activemq: ActiveMQ, tmp_path: Path) -> None:
    with BackedNode(tmp_path / "data", own_activemq.url, "--set", "backbone.spool_bytes=4000") as node:
        node.post("A", {"text": "x" * 2000})
        with pytest.raises(urllib.error.HTTPError, match="503"):
            node.post("A", {"text": "x" * 2000})
        node.post("A", {"text": "short"})


def test_a_node_killed_with_a_spool_brings_it_to_activemq_in_its_next_life(
    own_activemq: ActiveMQ, tmp_path: Path
) -> None:
    node = BackedNode(tmp_path / "data", own_activemq.url, name="spooling")
    try:
        node.start()
        for number in range(20):
            node.post("A", {"n": number})
        node.post("A", {"n": 20}, "known")
        node.kill()
        node.start()
        assert node.backbone["spooled"] == 21
        node.post("A", {"n": 20}, "known")
        node.post("A", {"n": 21})
        own_activemq.start()
        node.wait()
        node.post("A", {"n": 22})
        numbers = [event["n"] for event in node.events("A")]
        assert numbers == list(range(23))
    finally:
        node.close()


def test_kill_9_of_activemq_under_load_loses_nothing_and_keeps_the_order(
    own_activemq: ActiveMQ, tmp_path: Path
) -> None:
    own_activemq.start()
    with BackedNode(tmp_path / "data", own_activemq.url, *QUICK) as node:
        node.wait()
        with Load(node) as load:
            for _ in range(2):
                load.wait_for(300)
                own_activemq.kill()
                node.wait("away")
                load.wait_for(300)
                own_activemq.start()
                node.wait()
            load.wait_for(300)
        figures = load.judge()
        assert not figures["unknown"], f"a publisher was refused: {figures}"
        assert node.backbone["reconnects"] >= 2
        print(figures, node.backbone)


def test_kill_9_of_a_node_under_load_loses_nothing_and_stores_nothing_twice(
    activemq: ActiveMQ, tmp_path: Path
) -> None:
    node = BackedNode(tmp_path / "data", activemq.url)
    try:
        node.start().wait()
        with Load(node) as load:
            for _ in range(3):
                load.wait_for(200)
                node.kill()
                node.start()
            load.wait_for(200)
        node.wait()
        load.judge()
    finally:
        node.close()


def test_an_activemq_that_stands_still_is_noticed_by_its_heartbeat(
    own_activemq: ActiveMQ, tmp_path: Path
) -> None:
    own_activemq.start()
    with BackedNode(tmp_path / "data", own_activemq.url, *QUICK) as node:
        node.wait()
        with Load(node) as load:
            load.wait_for(100)
            own_activemq.signal(SIGSTOP)
            node.wait("away")
            load.wait_for(100)
            own_activemq.signal(SIGCONT)
            node.wait()
            load.wait_for(100)
        load.judge()


def test_the_next_of_several_activemqs_takes_over(tmp_path: Path) -> None:
    first, second = ActiveMQ(tmp_path / "first"), ActiveMQ(tmp_path / "second")
    with first, second, BackedNode(tmp_path / "data", f"{first.url},{second.place}", *QUICK) as node:
        node.wait()
        with Load(node) as load:
            load.wait_for(100)
            assert node.backbone["host"] == first.place
            first.kill()
            until(lambda: node.backbone["host"] == second.place)
            load.wait_for(100)
            first.start()
            second.kill()
            until(lambda: node.backbone["host"] == first.place)
            load.wait_for(100)
        load.judge()


def test_two_nodes_share_an_activemq_and_take_only_their_own(activemq: ActiveMQ, tmp_path: Path) -> None:
    with (
        BackedNode(tmp_path / "one", activemq.url, name="a/b c.d>*") as one,
        BackedNode(tmp_path / "two", activemq.url) as two,
    ):
        one.wait()
        two.wait()
        for number in range(20):
            one.post("A", {"one": number})
            two.post("A", {"two": number})
        assert one.events("A") == [{"one": number} for number in range(20)]
        assert two.events("A") == [{"two": number} for number in range(20)]


def test_a_wrong_password_is_told_clearly_and_shown_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("geheim@9\n")
    with ActiveMQ(tmp_path / "mq", "--user", "anna", "--password", "geheim@9") as server:
        url = f"stomp://anna:falsch77@{server.place}"
        with BackedNode(tmp_path / "wrong", url, "--set", "log.level=debug") as node:
            until(lambda: "password" in str(node.get("/readyz")["problems"]), node.log)
            assert node.post("A", {"n": 1})["first"] is None
            shown = str(node.get("/status")) + node.log()
            assert "falsch77" not in shown
        arguments = ("--set", f"backbone.password_file={secret}", "--set", "log.level=debug")
        with BackedNode(tmp_path / "right", f"stomp://anna@{server.place}", *arguments) as node:
            node.wait()
            assert node.post("A", {"n": 1})["first"] == 1
            assert "geheim" not in node.log()
        with BackedNode(tmp_path / "encoded", f"stomp://anna:geheim%409@{server.place}") as node:
            node.wait()


def test_without_stomp_py_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['stomp'] = None; from hpwsn.commands.main import main; sys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", code, "serve", "--data", str(tmp_path), "--backbone", "stomp://127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**environment(), "PYTHONWARNINGS": "ignore"},
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr.strip().splitlines()[-1].endswith("pip install ./client '.[activemq]'")
    assert "Traceback" not in run.stderr

"""Each compose file, started and used as its reader would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.deployment.engine import FOLDER, Engine, Failed, run, wait_for
from tests.documents import ROOT


def request(url: str, body: object = None) -> Any:
    """The JSON that a node answers with; the body of a 503 too."""
    data = None if body is None else json.dumps(body).encode()
    asked = Request(url, data, {"Content-Type": "application/json"})
    try:
        with urlopen(asked, timeout=60) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            raise Failed(f"{url} answered {error.code}: {error.read(2000)!r}") from None


def expect(found: object, wanted: object, what: str) -> None:
    """Fail unless the two are equal."""
    if found != wanted:
        raise Failed(f"{what}: {found!r}, not {wanted!r}")


class Composed:
    """The services of a running compose file."""

    def __init__(self, engine: Engine, file: str) -> None:
        self.engine, self.file = engine, file

    def up(self) -> None:
        """Build and start all services, and wait until each is healthy."""
        self.engine.compose(self.file, "up", "--detach", "--build")
        for container in self.containers():
            wait_for(f"{container} of {self.file} is healthy", lambda c=container: self.engine.is_healthy(c))

    def containers(self) -> list[str]:
        """The ids of all containers."""
        return self.engine.compose(self.file, "ps", "--all", "--quiet").split()

    def within(self, service: str, *command: str) -> str:
        """The output of a command in a service's container."""
        return self.engine.compose(self.file, "exec", "-T", service, *command)

    def down(self) -> None:
        """Remove containers, networks and volumes."""
        self.engine.compose(self.file, "down", "--volumes", "--timeout", "60")


@contextmanager
def composed(engine: Engine, file: str) -> Iterator[Composed]:
    """A compose file from nothing to nothing; its log is printed where something fails."""
    services = Composed(engine, file)
    services.down()
    try:
        services.up()
        yield services
    except Failed:
        print(engine.compose(file, "logs", "--tail", "60"), flush=True)
        raise
    finally:
        services.down()


def check_sandbox(engine: Engine, container: str) -> None:
    """No container is root, has a compiler, or can write beside its volume and /tmp."""
    user = engine("exec", container, "id", "--user").strip()
    if user == "0":
        raise Failed(f"{container} runs as root")
    attempt = "touch /etc/written 2>/dev/null && echo written; command -v gcc make pip; true"
    expect(engine("exec", container, "sh", "-c", attempt), "", f"what {container} can do")


def check_node(engine: Engine) -> None:
    """A node alone: what it took outlives a restart, it stops in order, and the image has no Java."""
    with composed(engine, "node.yaml") as services:
        (container,) = services.containers()
        check_sandbox(engine, container)
        expect(services.within("node", "sh", "-c", "command -v java; true"), "", "Java in the image")
        services.within("node", "hpwsn", "publish", "test:first", "it works")
        events = "http://127.0.0.1:8080/topics/test:first/events"
        expect([event["data"] for event in request(events)], [{"text": "it works"}], "events")
        engine.compose("node.yaml", "stop")
        expect(engine.inspect(container)["State"]["ExitCode"], 0, "the exit status of a stopped node")
        engine.compose("node.yaml", "start")
        wait_for("the node is back", lambda: engine.is_healthy(container))
        expect(len(request(events)), 1, "events after a restart")


def check_servers(engine: Engine) -> None:
    """A node with ActiveMQ and OpenLDAP: topics are the directory's, events pass the backbone."""
    with composed(engine, "servers.yaml") as services:
        for container in services.containers():
            check_sandbox(engine, container)
        ldif = "dn: cn=ALL,ou=topics,dc=hpwsn\\nobjectClass: hpwsnTopic\\ncn: ALL\\n"
        bind = "-x -H ldap://127.0.0.1:1389 -D cn=admin,dc=hpwsn -y /run/secrets/ldap-admin-password"
        services.within("slapd", "sh", "-c", f"printf '{ldif}' | ldapadd {bind}")
        ready = "http://127.0.0.1:8080/readyz"
        wait_for("the node is ready", lambda: request(ready)["ready"])
        events = "http://127.0.0.1:8080/topics/ALL/events"
        wait_for("the node knows the new topic", lambda: request(events, {"n": 1}))
        expect([event["data"] for event in request(f"{events}?wait=30")], [{"n": 1}], "events")
        backbone = request("http://127.0.0.1:8080/status")["backbone"]
        expect((backbone["state"], backbone["spooled"]), ("ready", 0), "the backbone")
        try:
            request("http://127.0.0.1:8080/topics/OTHER/events", {"n": 1})
        except Failed:
            return
        raise Failed("a topic that is not in the directory was taken")


def check_cluster(engine: Engine) -> None:
    """Three nodes: all know each other, and an event goes from the first to the third."""
    with composed(engine, "cluster.yaml") as services:
        for container in services.containers():
            check_sandbox(engine, container)
        alive = "3 of 3 nodes alive"
        wait_for(alive, lambda: alive in services.within("node-1", "hpwsn", "cluster"))

        def crossed() -> object:
            """Ask the third for an event, which makes it interested, and publish at the first meanwhile."""
            request("http://127.0.0.1:8081/topics/hall/events?reliable=true", {"n": 1})
            return request("http://127.0.0.1:8083/topics/hall/events?wait=2")

        wait_for("an event at the third node", crossed)


def make_secrets() -> None:
    """The secrets of the compose files, as their reader makes them."""
    print(run(str(ROOT / "scripts" / "deploy" / "make-secrets")).strip(), flush=True)


def validate(engine: Engine, file: Path) -> None:
    """Compose itself takes the file."""
    engine.compose(file.name, "config", "--quiet")


CHECKS = {"node": check_node, "servers": check_servers, "cluster": check_cluster}
FILES = sorted(FOLDER.glob("*.yaml"))

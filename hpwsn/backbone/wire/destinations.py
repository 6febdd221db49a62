"""Names on the message broker: its address, the queue of a node, and the destination of a topic.

Pure. An address is `stomp://user:password@host:61613`, or several hosts with commas, tried in turn. A node's
queue is `/queue/hpwsn.node.NAME`. A topic `A:B:C` is the destination `/topic/hpwsn.A.B.C`; where a name is of
another namespace, or has a dot, it is percent-encoded, so that every topic has exactly one destination.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic

DEFAULT_PORT = 61613
ROOT = "hpwsn."
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/,\[\]]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the message broker is, and who asks; the password is never shown."""

    hosts: tuple[tuple[str, int], ...]
    user: str | None = None
    password: str | None = None

    def __str__(self) -> str:
        hosts = ",".join(map(place, self.hosts))
        return f"stomp://{f'{quote(self.user)}:***@' if self.user else ''}{hosts}"

    def __repr__(self) -> str:
        return f"Address({self})"


def parse_address(url: str) -> Address:
    """Read an address; ValueError says what it wants, and never the password."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator or scheme != "stomp":
        raise ValueError("begins with stomp://, such as stomp://user:password@host:61613")
    credentials, at, hosts = rest.rpartition("@")
    user, colon, password = credentials.partition(":")
    if at and not user:
        raise ValueError("names a user before the @, such as stomp://user:password@host:61613")
    return Address(
        tuple(_host(text) for text in hosts.rstrip("/").split(",")),
        unquote(user) if at else None,
        unquote(password) if colon else None,
    )


def _host(text: str) -> tuple[str, int]:
    found = _HOST.fullmatch(text.strip())
    port = int((found and found[2]) or DEFAULT_PORT)
    if found is None or not 0 < port < 65536:
        raise ValueError(
            f"names hosts as host:port with commas between them, and {text[-60:]!r} is none;"
            " write a '@', ':' or '/' in a password as %40, %3A or %2F"
        )
    return found[1].strip("[]"), port


def place(host: tuple[str, int]) -> str:
    """A host and port as a reader writes them."""
    return f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"


def node_queue(node: str) -> str:
    """The queue of a node."""
    return f"/queue/{ROOT}node.{encode_name(node)}"


def refused_queue(node: str) -> str:
    """Where a node puts what came by its queue and cannot be taken, for an operator to look at."""
    return f"/queue/{ROOT}refused.{encode_name(node)}"


def encode_name(name: str) -> str:
    """One step of a destination, without the characters that mean something there."""
    return "".join(char if char.isalnum() or char in "_-" else quote(char, safe="") for char in name).replace(
        ".", "%2E"
    )


def topic_destination(topic: Topic) -> str:
    """The destination of a topic."""
    root = topic.path[0] if topic.namespace == HPWSN_TOPICS else f"{{{topic.namespace}}}{topic.path[0]}"
    return "/topic/" + ROOT + ".".join(map(encode_name, (root, *topic.path[1:])))


def subtree_destination(topic: Topic) -> str:
    """The wildcard for a topic and all below it."""
    return topic_destination(topic) + ".>"


def destination_topic(destination: str) -> Topic:
    """The topic of a destination; a dot that an MQTT client has in a name comes as a slash."""
    prefix = "/topic/" + ROOT
    if not destination.startswith(prefix):
        raise ValueError(f"{destination[:80]!r} is no destination of a topic, which begin with {prefix}")
    return Topic.parse(":".join(map(_decode_name, destination[len(prefix) :].split("."))))


def _decode_name(step: str) -> str:
    name = unquote(step)
    return name if name.startswith("{") else name.replace("/", ".")

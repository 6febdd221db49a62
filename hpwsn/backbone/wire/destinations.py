"""Names on the message broker: its address, the queue of a node, and the destination of a topic. Pure.

An address is `stomp://user:password@host:61613`. It may name several hosts, separated by commas, which are
tried in turn. The queue of a node is `/queue/hpwsn.node.NAME`. The destination of a topic `A:B:C` is
`/topic/hpwsn.A.B.C`. A name of another namespace, and a name with a dot, is percent-encoded, so that every
topic has exactly one destination.
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
    """The hosts of the message broker and the credentials; `str` and `repr` hide the password."""

    hosts: tuple[tuple[str, int], ...]
    user: str | None = None
    password: str | None = None

    def __str__(self) -> str:
        hosts = ",".join(map(place, self.hosts))
        return f"stomp://{f'{quote(self.user)}:***@' if self.user else ''}{hosts}"

    def __repr__(self) -> str:
        return f"Address({self})"


def parse_address(url: str) -> Address:
    """Parse an address; the text of the ValueError never contains the password."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator or scheme != "stomp":
        raise ValueError("must begin with stomp://, such as stomp://user:password@host:61613")
    credentials, at, hosts = rest.rpartition("@")
    user, colon, password = credentials.partition(":")
    if at and not user:
        raise ValueError("must have a user before the @, such as stomp://user:password@host:61613")
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
            f"must name hosts as host:port, separated by commas, but {text[-60:]!r} is not host:port;"
            " write a '@', ':' or '/' in a password as %40, %3A or %2F"
        )
    return found[1].strip("[]"), port


def place(host: tuple[str, int]) -> str:
    """A host and port as text; an IPv6 address has brackets."""
    return f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"


def node_queue(node: str) -> str:
    """The name of the queue of a node."""
    return f"/queue/{ROOT}node.{encode_name(node)}"


def refused_queue(node: str) -> str:
    """The name of the queue for messages that a node rejected, for operators to inspect."""
    return f"/queue/{ROOT}refused.{encode_name(node)}"


def encode_name(name: str) -> str:
    """One part of a destination; characters with a special meaning are percent-encoded."""
    return "".join(char if char.isalnum() or char in "_-" else quote(char, safe="") for char in name).replace(
        ".", "%2E"
    )


def topic_destination(topic: Topic) -> str:
    """The destination of a topic."""
    root = topic.path[0] if topic.namespace == HPWSN_TOPICS else f"{{{topic.namespace}}}{topic.path[0]}"
    return "/topic/" + ROOT + ".".join(map(encode_name, (root, *topic.path[1:])))


def subtree_destination(topic: Topic) -> str:
    """The wildcard destination of a topic and all topics below it."""
    return topic_destination(topic) + ".>"


def destination_topic(destination: str) -> Topic:
    """The topic of a destination; ActiveMQ maps a dot in the topic name of an MQTT client to a slash."""
    prefix = "/topic/" + ROOT
    if not destination.startswith(prefix):
        raise ValueError(
            f"{destination[:80]!r} is not the destination of a topic; it must begin with {prefix}"
        )
    return Topic.parse(":".join(map(_decode_name, destination[len(prefix) :].split("."))))


def _decode_name(step: str) -> str:
    name = unquote(step)
    return name if name.startswith("{") else name.replace("/", ".")

"""The entry of one topic in LDAP: read, written, and found wanting (its schema: ldap_schema/hpwsn.schema).

Pure. A topic's name is in its RDN: `cn`, or `hpwsnName` beside it where a sibling differs only in case.
An entry that cannot be a topic keeps the reason, so that it can be reported and passed over.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hpwsn.topics.ldap.entries.dn import DnError, Key, Rdn, dn_key, encode_rdn, parse_dn, rdn_key, split_dn
from hpwsn.topics.tree.declarations import ROUTING_POLICIES, Declaration
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic

CLASS = "hpwsnTopic"
ATTRIBUTES = ("cn", "description", "hpwsnName", "hpwsnNamespace", "hpwsnCode", "hpwsnRouting")

# What nearly every entry is called, read without the cost of reading all names that there can be.
_PLAIN = re.compile(r"cn=([A-Za-z0-9_.-]+)").fullmatch

_LAST = float("inf")

Attributes = Mapping[str, Sequence[bytes]]


class Entry(NamedTuple):
    """One entry; `id` stays the same when it is renamed, `fault` is why it can be no topic."""

    id: str
    rdn: str
    key: Key
    name: str = ""
    namespace: str | None = None
    description: str = ""
    routing: str | None = None
    code: int | None = None
    fault: str | None = None

    @property
    def parent(self) -> Key:
        """The key of the entry above it."""
        return self.key[1:]

    @property
    def order(self) -> tuple[int, float, str]:
        """Where it comes among all: breadth-first, then by code, then by name."""
        return len(self.key), _LAST if self.code is None else self.code, self.name


def parse_entry(id_: str, dn: str, attributes: Attributes) -> Entry:
    """Read an entry as the server sends it."""
    rdn, above = split_dn(dn)
    try:
        own, own_key = _names(rdn)
        key = (own_key, *dn_key(above))
    except (DnError, IndexError) as error:
        return Entry(id_, rdn, ((("", dn),),), fault=str(error))
    try:
        return _parse(id_, rdn, key, dict(own), {name.lower(): each for name, each in attributes.items()})
    except (ValueError, UnicodeError) as error:
        return Entry(id_, rdn, key, fault=str(error))


def _names(rdn: str) -> tuple[Rdn, Rdn]:
    plain = _PLAIN(rdn)
    if plain:
        return (("cn", plain[1]),), (("cn", plain[1].lower()),)
    own = parse_dn(rdn)[0]
    return own, rdn_key(own)


def _parse(id_: str, rdn: str, key: Key, own: Mapping[str, str], values: Attributes) -> Entry:
    named = {attribute.lower(): value for attribute, value in own.items()}
    name = named.get("hpwsnname") or named.get("cn")
    if not name:
        raise ValueError(f"{rdn} has no cn in its name")
    routing = _single(values, "hpwsnrouting")
    if routing is not None and routing.lower() not in ROUTING_POLICIES:
        raise ValueError(f"hpwsnRouting is {routing!r}, and may be {' or '.join(ROUTING_POLICIES)}")
    code = _single(values, "hpwsncode")
    description = "\n".join(value.decode() for value in values.get("description", ()))
    return Entry(
        id_,
        rdn,
        key,
        name,
        _single(values, "hpwsnnamespace"),
        description,
        routing and routing.lower(),
        None if code is None else int(code),
    )


def _single(values: Attributes, name: str) -> str | None:
    found = values.get(name)
    return found[0].decode() if found else None


def topic_of(entry: Entry, parent: Topic | None) -> Topic:
    """The topic that an entry stands for below its parent's; a fault where there can be none."""
    if parent is None:
        return Topic(entry.namespace or HPWSN_TOPICS, (entry.name,))
    plain = entry.namespace in (None, parent.namespace)
    return parent.child(entry.name if plain else f"{{{entry.namespace}}}{entry.name}")


def rdn_of(topic: Topic, exact: bool = False) -> str:
    """The RDN for a new entry of this topic; `exact` tells it from a sibling that differs only in case."""
    namespace, name = own_namespace(topic)
    rdn: Rdn = (("cn", name),)
    if exact:
        rdn += (("hpwsnName", name),)
    if namespace is not None:
        rdn += (("hpwsnNamespace", namespace),)
    return encode_rdn(rdn)


def attributes_of(declaration: Declaration, exact: bool = False) -> dict[str, list[str]]:
    """The attributes for a new entry of this topic."""
    namespace, name = own_namespace(declaration.topic)
    found = {
        "objectClass": CLASS,
        "cn": name,
        "hpwsnName": name if exact else "",
        "hpwsnNamespace": namespace or "",
        "hpwsnRouting": declaration.routing or "",
        "description": declaration.description,
    }
    return {attribute: [value] for attribute, value in found.items() if value}


def own_namespace(topic: Topic) -> tuple[str | None, str]:
    """The namespace that an entry must name, None where it has that of what is above it; and its name."""
    uri, brace, name = topic.path[-1].rpartition("}")
    if brace:
        return uri[1:], name
    root = len(topic.path) == 1 and topic.namespace != HPWSN_TOPICS
    return (topic.namespace if root else None), name


def caseless(topic: Topic) -> tuple[str, str, str]:
    """Equal for topics whose entries would have one name, since cn ignores case."""
    namespace, name = own_namespace(topic)
    return str(topic.parent or ""), name.lower(), namespace or ""

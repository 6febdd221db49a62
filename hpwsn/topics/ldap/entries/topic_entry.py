"""Topic entries of LDAP: parsing, encoding, and the reasons why an entry is invalid.

The schemas are ldap_schema/hpwsn.schema and, for `hpwsnVisibility`, hpwsn-visibility.schema. Pure. A topic's
name is in its RDN: `cn`, and also `hpwsnName` if a sibling differs only in case. An invalid entry keeps the
reason, so that it can be reported and skipped.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hpwsn.topics.ldap.entries.dn import DnError, Key, Rdn, dn_key, encode_rdn, parse_dn, rdn_key, split_dn
from hpwsn.topics.tree.declarations import ROUTING_POLICIES, VISIBILITIES, Declaration
from hpwsn_client.wsn.soap.names import HPWSN_TOPICS
from hpwsn_client.wsn.topics.topic_expressions import Topic

CLASS = "hpwsnTopic"
VISIBILITY_CLASS = "hpwsnTopicVisibility"
"""The auxiliary class of entries that say their visibility."""
ATTRIBUTES = (
    "cn",
    "description",
    "hpwsnName",
    "hpwsnNamespace",
    "hpwsnCode",
    "hpwsnRouting",
    "hpwsnVisibility",
)

# The usual form of an RDN, parsed without the cost of the general parser.
_PLAIN = re.compile(r"cn=([A-Za-z0-9_.-]+)").fullmatch

_LAST = float("inf")

Attributes = Mapping[str, Sequence[bytes]]


class Entry(NamedTuple):
    """One entry; `id` survives a rename, and `fault` is why the entry is not a topic."""

    id: str
    rdn: str
    key: Key
    name: str = ""
    namespace: str | None = None
    description: str = ""
    routing: str | None = None
    code: int | None = None
    visibility: str | None = None
    fault: str | None = None
    version: str | None = None
    """The entryCSN, which changes with the entry; None if it is not visible."""

    @property
    def parent(self) -> Key:
        """The key of the parent entry."""
        return self.key[1:]

    @property
    def order(self) -> tuple[int, float, str]:
        """The sort key: breadth-first, then by code, then by name."""
        return len(self.key), _LAST if self.code is None else self.code, self.name


def parse_entry(id_: str, dn: str, attributes: Attributes) -> Entry:
    """Parse an entry as the server sends it."""
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
        raise ValueError(f"the RDN {rdn} has no cn; name the entry cn=TOPIC")
    routing = _choice(values, "hpwsnRouting", ROUTING_POLICIES)
    visibility = _choice(values, "hpwsnVisibility", VISIBILITIES)
    code = _single(values, "hpwsncode")
    description = "\n".join(value.decode() for value in values.get("description", ()))
    return Entry(
        id_,
        rdn,
        key,
        name,
        _single(values, "hpwsnnamespace"),
        description,
        routing,
        None if code is None else int(code),
        visibility,
        version=_single(values, "entrycsn"),
    )


def _choice(values: Attributes, name: str, known: Sequence[str]) -> str | None:
    """The value of an attribute that ignores case; ValueError if it is not known."""
    found = _single(values, name.lower())
    if found is not None and found.lower() not in known:
        raise ValueError(f"{name} is {found!r}; it must be {' or '.join(known)}")
    return found and found.lower()


def _single(values: Attributes, name: str) -> str | None:
    found = values.get(name)
    return found[0].decode() if found else None


def topic_of(entry: Entry, parent: Topic | None) -> Topic:
    """Return the topic of an entry below its parent's topic; raises a fault for an invalid name."""
    if parent is None:
        return Topic(entry.namespace or HPWSN_TOPICS, (entry.name,))
    plain = entry.namespace in (None, parent.namespace)
    return parent.child(entry.name if plain else f"{{{entry.namespace}}}{entry.name}")


def rdn_of(topic: Topic, exact: bool = False) -> str:
    """Return the RDN for a new entry of this topic; `exact` if a sibling differs only in case."""
    namespace, name = own_namespace(topic)
    rdn: Rdn = (("cn", name),)
    if exact:
        rdn += (("hpwsnName", name),)
    if namespace is not None:
        rdn += (("hpwsnNamespace", namespace),)
    return encode_rdn(rdn)


def attributes_of(declaration: Declaration, exact: bool = False) -> dict[str, list[str]]:
    """Return the attributes for a new entry of this topic."""
    namespace, name = own_namespace(declaration.topic)
    found = {
        "cn": name,
        "hpwsnName": name if exact else "",
        "hpwsnNamespace": namespace or "",
        "hpwsnRouting": declaration.routing or "",
        "hpwsnVisibility": declaration.visibility or "",
        "description": declaration.description,
    }
    classes = [CLASS, VISIBILITY_CLASS] if declaration.visibility else [CLASS]
    return {"objectClass": classes, **{attribute: [value] for attribute, value in found.items() if value}}


def own_namespace(topic: Topic) -> tuple[str | None, str]:
    """Return the namespace that the entry must name, None for its parent's, and the name."""
    uri, brace, name = topic.path[-1].rpartition("}")
    if brace:
        return uri[1:], name
    root = len(topic.path) == 1 and topic.namespace != HPWSN_TOPICS
    return (topic.namespace if root else None), name


def caseless(topic: Topic) -> tuple[str, str, str]:
    """Return a key that is equal for topics whose entries would collide, since cn ignores case."""
    namespace, name = own_namespace(topic)
    return str(topic.parent or ""), name.lower(), namespace or ""

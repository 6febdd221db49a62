"""LDIF text of topics: parsing and encoding of RFC 2849 entry records.

Pure, without python-ldap, so that a topic file can be exported to a server and a server's dump imported into
a file. Entries of other classes are skipped. Invalid topic entries are errors, since an import must not lose
topics silently.
"""

import base64
import re
from collections.abc import Iterable, Iterator

from hpwsn.topics.ldap.entries.dn import dn_key, split_dn
from hpwsn.topics.ldap.entries.mirror import Mirror
from hpwsn.topics.ldap.entries.topic_entry import CLASS, Entry, attributes_of, caseless, parse_entry, rdn_of
from hpwsn.topics.tree.declarations import Declaration
from hpwsn.topics.tree.topic_toml import DocumentError
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

DEFAULT_BASE = "ou=topics,dc=hpwsn"
_WIDTH = 76
_MOST_RDNS = 64
"""The most RDNs of a topmost topic: its base is no deeper than a topic."""
# Narrower than SAFE-STRING of RFC 2849, which allows control characters.
_SAFE = re.compile(r"(?![ :<])[ -~]*(?<! )\Z")
_LINE = re.compile(r"([A-Za-z0-9.;-]+):([:<]?) *(.*)", re.DOTALL)

Record = tuple[str, dict[str, list[bytes]]]


def encode_ldif(declarations: Iterable[Declaration], base: str = DEFAULT_BASE) -> str:
    """Encode an entry for each topic below the base, parents first, as input for ldapadd."""
    paths: dict[Topic, str] = {}
    names: set[tuple[str, str, str]] = set()
    lines = [f"# Topics of HPwsn, to be added below {base}: ldapadd -f FILE, or hpwsn topics load FILE."]
    for declaration in declarations:
        topic = declaration.topic
        exact = caseless(topic) in names
        names.add(caseless(topic))
        above = base if topic.parent is None else paths[topic.parent]
        paths[topic] = f"{rdn_of(topic, exact)},{above}"
        lines += ["", *_fold("dn", paths[topic])]
        for attribute, values in attributes_of(declaration, exact).items():
            lines += [line for value in values for line in _fold(attribute, value)]
    return "\n".join(lines) + "\n"


def parse_ldif(text: str, most: int | None = None) -> list[Declaration]:
    """Return the topics, breadth-first; the base is the parent of the topmost topic entry.

    DocumentError if there are more than `most`.
    """
    found: list[tuple[str, Entry]] = []
    for dn, attributes in _records(text):
        if _is_topic(dn, attributes):
            found.append(_entry(dn, attributes))
        if most is not None and len(found) > most:
            raise DocumentError(f"it has more than {most} topics; split it, or use `hpwsn topics`")
    top = min(found, key=lambda each: len(each[1].key), default=None)
    if top and len(top[1].key) > _MOST_RDNS:
        raise DocumentError(
            f"{shown(top[0])}: the topmost topic has {len(top[1].key)} RDNs; {_MOST_RDNS} are allowed"
        )
    mirror = Mirror(split_dn(top[0])[1] if top else DEFAULT_BASE)
    for _, entry in found:
        mirror.put(entry)
    if len(mirror) < len(found):
        raise DocumentError("two entries have the same name; keep one")
    mirror.changes()
    for problem in mirror.skipped():
        raise DocumentError(problem)
    return mirror.declarations()


def _entry(dn: str, attributes: dict[str, list[bytes]]) -> tuple[str, Entry]:
    try:
        for value in attributes.get("cn", ()):
            value.decode()
    except UnicodeError:
        raise DocumentError(f"{shown(dn)}: its cn is not UTF-8; encode it in UTF-8") from None
    try:
        return dn, parse_entry(str(dn_key(dn)), dn, attributes)
    except ValueError as error:
        raise DocumentError(str(error)) from None


def _is_topic(dn: str, attributes: dict[str, list[bytes]]) -> bool:
    classes = attributes.get("objectclass", [])
    if not classes:
        raise DocumentError(f"{shown(dn)}: the entry has no objectClass; that of a topic is {CLASS}")
    return any(value.decode("utf-8", "replace").lower() == CLASS.lower() for value in classes)


def _records(text: str) -> Iterator[Record]:
    record: dict[str, list[bytes]] = {}
    for number, line in _lines(text):
        if line:
            name, value = _pair(number, line)
            if name == "changetype" and value.lower() != b"add":
                raise DocumentError(f"line {number}: a change record cannot be loaded; give entries only")
            if name not in ("version", "changetype"):
                record.setdefault(name, []).append(value)
        elif record:
            yield _record(number, record)
            record = {}


def _record(number: int, record: dict[str, list[bytes]]) -> Record:
    names = record.pop("dn", [])
    if len(names) != 1:
        raise DocumentError(
            f"before line {number}: a record must have one dn; separate records with a blank line"
        )
    try:
        return names[0].decode(), record
    except UnicodeError:
        raise DocumentError("a dn is not UTF-8; encode the file in UTF-8") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, unfolded and without comments."""
    start, whole = 0, ""
    for number, line in enumerate([*re.split(r"\r?\n", text), ""], 1):
        if line.startswith(" ") and start:
            whole += line[1:]
            continue
        if start and not whole.startswith("#"):
            yield start, whole
        start, whole = number, line
    yield start, ""


def _pair(number: int, line: str) -> tuple[str, bytes]:
    found = _LINE.fullmatch(line)
    if not found or found[2] == "<":
        raise DocumentError(f"line {number}: {line[:60]!r} is not valid LDIF; write `attribute: value`")
    if not found[2]:
        return found[1].lower(), found[3].encode()
    try:
        return found[1].lower(), base64.b64decode(found[3], validate=True)
    except ValueError:
        raise DocumentError(
            f"line {number}: the value of {found[1]} is not base64; write `{found[1]}: TEXT` for plain text"
        ) from None


def _fold(attribute: str, value: str) -> list[str]:
    if _SAFE.match(value):
        line = f"{attribute}: {value}"
    else:
        line = f"{attribute}:: {base64.b64encode(value.encode()).decode()}"
    rest = [line[start : start + _WIDTH - 1] for start in range(_WIDTH, len(line), _WIDTH - 1)]
    return [line[:_WIDTH], *(f" {part}" for part in rest)]

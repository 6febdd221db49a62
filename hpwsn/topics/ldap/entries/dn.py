"""Distinguished names (RFC 4514), as far as the names of topic entries need them.

Pure. A key is equal for all spellings of a name, for names that one server returned. Comparison by the
matching rules of the attributes is left to the server.
"""

import re
from functools import lru_cache
from unicodedata import normalize

Rdn = tuple[tuple[str, str], ...]
Key = tuple[Rdn, ...]

# hpwsnName and hpwsnNamespace use caseExactMatch; all other naming attributes ignore case.
_EXACT = frozenset({"hpwsnname", "hpwsnnamespace"})
_PAIR = re.compile(
    r" *([A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)*) *= *"
    r'((?:\\[0-9A-Fa-f]{2}|\\[^0-9A-Fa-f]|[^\\,+;"])*?) *([,+;]|\Z)'
)
_BYTES = re.compile(r"(?:\\[0-9A-Fa-f]{2})+")
_ESCAPED = re.compile(r"\\([^0-9A-Fa-f])", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_SPECIAL = re.compile(r'[\\,+"<>;=]|^[ #]| \Z')


class DnError(ValueError):
    """The text is not a distinguished name; the message says where parsing failed."""


def parse_dn(text: str) -> Key:
    """Return the RDNs, the entry's own first, each a tuple of attributes and values."""
    parts: list[Rdn] = []
    pairs: list[tuple[str, str]] = []
    place = 0
    while text.strip():
        found = _PAIR.match(text, place)
        if not found:
            raise DnError(
                f"{text!r} is not a distinguished name: cannot read {text[place:]!r}; write cn=A,dc=x"
            )
        pairs.append((found[1], _unescape(found[2])))
        place = found.end()
        if found[3] != "+":
            parts.append(tuple(pairs))
            pairs = []
        if not found[3]:
            break
    return tuple(parts)


def split_dn(text: str) -> tuple[str, str]:
    """Return the texts of the entry's RDN and of its parent's DN."""
    place = -1
    while (place := text.find(",", place + 1)) > 0:
        before = text[:place]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return before, text[place + 1 :]
    return text, ""


def encode_rdn(rdn: Rdn) -> str:
    """Return the text of one RDN."""
    return "+".join(f"{name}={escape_value(value)}" for name, value in rdn)


def escape_value(value: str) -> str:
    """Return a value escaped for a DN."""
    escaped = _SPECIAL.sub(lambda found: f"\\{found[0]}", value)
    return _CONTROL.sub(lambda found: f"\\{ord(found[0]):02x}", escaped)


@lru_cache(maxsize=4096)
def dn_key(text: str) -> Key:
    """Return the key of a DN, which is equal for all its spellings."""
    return tuple(rdn_key(rdn) for rdn in parse_dn(text))


def rdn_key(rdn: Rdn) -> Rdn:
    """Return the key of one RDN."""
    return tuple(sorted((name.lower(), _normal(name.lower(), value)) for name, value in rdn))


def _normal(name: str, value: str) -> str:
    if name in _EXACT:
        return value
    return " ".join(normalize("NFKC", value).lower().split())


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPED.sub(lambda found: f"\\{ord(found[1].encode()[:1]):02x}" + _tail(found[1]), text)
    return _BYTES.sub(
        lambda found: bytes.fromhex(found[0].replace("\\", "")).decode("utf-8", "replace"), plain
    )


def _tail(character: str) -> str:
    return "".join(f"\\{byte:02x}" for byte in character.encode()[1:])

"""The connection to an LDAP server: URL, TLS, bind, paged reads, and translation of errors.

Only this module opens connections. Calls block, each for at most `timeout`. Certificates are always verified,
against `ca_file` or the system's authorities.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import ldap
from ldap.controls import SimplePagedResultsControl
from ldap.ldapobject import SimpleLDAPObject

from hpwsn.topics.directory.directory import Access, TopicDirectoryError
from hpwsn.topics.directory.entry_directory import EntryKind
from hpwsn.topics.ldap.entries.dn import DnError, dn_key
from hpwsn.topics.ldap.entries.topic_entry import ATTRIBUTES, CLASS, parse_entry

TOPICS = EntryKind(CLASS, (*ATTRIBUTES, "entryCSN"), parse_entry)
KEEPALIVE = 30
"""Seconds of silence after which the operating system probes the server."""


@dataclass(frozen=True, slots=True)
class Location:
    """The server's address, and the base entry of the topics."""

    uri: str
    base: str

    def __str__(self) -> str:
        return f"{self.uri}/{self.base}"

    def below(self, base: str) -> Location:
        """Another base of the same server; ValueError if that is no DN."""
        if not dn_key(base):
            raise DnError(f"{base!r} is not a distinguished name; write ou=sensors,dc=example")
        return Location(self.uri, base)


def parse_location(url: str) -> Location:
    """Parse `ldap://host:port/base` or `ldaps://…`."""
    parts = urlsplit(url)
    base = unquote(parts.path.removeprefix("/"))
    try:
        _check_parts(parts.netloc, bool(parts.query or parts.fragment), base)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError as error:
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        raise TopicDirectoryError(f"topic directory {shown}: {error}") from None
    host = parts.hostname or ""
    return Location(f"{parts.scheme.lower()}://{f'[{host}]' if ':' in host else host}{port}", base)


def _check_parts(host: str, has_query: bool, base: str) -> None:
    if "@" in host:
        raise ValueError("the URL must not contain a user; set topics.bind_dn and topics.password_file")
    if not host or has_query or not base:
        raise ValueError("write ldap://host:port/base, such as ldap://localhost/ou=topics,dc=hpwsn")
    try:
        dn_key(base)
    except DnError as error:
        raise ValueError(str(error)) from None


def connect(location: Location, access: Access, kind: type[Any] = SimpleLDAPObject) -> Any:
    """Return an open connection of class `kind`, secured and bound as configured."""
    password = read_password(access)
    with errors(location):
        connection = kind(location.uri)
        _set_options(connection, access)
        if access.start_tls:
            connection.start_tls_s()
        connection.simple_bind_s(access.bind_dn, password)
    return connection


def read_password(access: Access) -> str:
    """Read the password from its file; refuses an empty one, which would bind anonymously."""
    if not access.bind_dn:
        return ""
    if not access.password_file:
        prefix = "edit_" if access.editing else ""
        raise TopicDirectoryError(
            f"topics.{prefix}bind_dn is {access.bind_dn}, but it has no password;"
            f" set topics.{prefix}password_file"
        )
    try:
        password = Path(access.password_file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise TopicDirectoryError(
            f"the password file {access.password_file} cannot be read: {reason}"
        ) from None
    if not password:
        raise TopicDirectoryError(
            f"the password file {access.password_file} is empty; write the password into it"
        )
    return password


def check_files(access: Access) -> None:
    """Raise TopicDirectoryError if the password or the certificates cannot be read."""
    read_password(access)
    if access.ca_file and not Path(access.ca_file).is_file():
        raise TopicDirectoryError(
            f"topics.ca_file is {access.ca_file}: there is no such file; correct the path"
        )


def _set_options(connection: Any, access: Access) -> None:
    connection.protocol_version = ldap.VERSION3
    options = {
        ldap.OPT_REFERRALS: 0,
        ldap.OPT_NETWORK_TIMEOUT: access.timeout,
        ldap.OPT_TIMEOUT: access.timeout,
        ldap.OPT_X_KEEPALIVE_IDLE: KEEPALIVE,
        ldap.OPT_X_KEEPALIVE_INTERVAL: KEEPALIVE // 3,
        ldap.OPT_X_KEEPALIVE_PROBES: 3,
        ldap.OPT_X_TLS_REQUIRE_CERT: ldap.OPT_X_TLS_DEMAND,
    }
    if access.ca_file:
        options[ldap.OPT_X_TLS_CACERTFILE] = access.ca_file
    for option, value in options.items():
        connection.set_option(option, value)
    # TLS options take effect with the next context, so this option is last.
    connection.set_option(ldap.OPT_X_TLS_NEWCTX, 0)


def filter_of(kind: EntryKind) -> str:
    """The search filter for the entries of a kind."""
    return f"(objectClass={kind.object_class})"


def attributes_of(kind: EntryKind) -> list[str]:
    """The attributes to ask for."""
    return [*kind.attributes, "entryUUID"]


def read_entries(
    connection: Any, location: Location, access: Access, kind: EntryKind = TOPICS
) -> Iterator[Any]:
    """Yield all entries of a kind below the base; the next page is requested while one is parsed."""
    control = SimplePagedResultsControl(True, size=access.page_size, cookie="")
    message: int | None = _ask(connection, location, kind, control)
    while message is not None:
        with errors(location):
            _, found, _, controls = connection.result3(message, timeout=access.timeout)
        cookies = [each.cookie for each in controls if each.controlType == control.controlType]
        control.cookie = cookies[0] if cookies else ""
        message = _ask(connection, location, kind, control) if control.cookie else None
        for dn, attributes in found:
            if dn is not None:
                yield kind.parse(attributes["entryUUID"][0].decode(), dn, attributes)


def _ask(connection: Any, location: Location, kind: EntryKind, control: Any) -> int:
    with errors(location):
        message: int = connection.search_ext(
            location.base, ldap.SCOPE_SUBTREE, filter_of(kind), attributes_of(kind), serverctrls=[control]
        )
    return message


@contextmanager
def errors(location: Location) -> Iterator[None]:
    """Translate python-ldap's exceptions to TopicDirectoryError, with the remedy."""
    try:
        yield
    except ldap.LDAPError as error:
        raise TopicDirectoryError(f"topic directory {location}: {explain(error)}") from error


def explain(error: ldap.LDAPError) -> str:
    """Return what went wrong, in plain words."""
    details = error.args[0] if error.args and isinstance(error.args[0], dict) else {}
    info = " ".join(str(details.get("info") or details.get("desc") or error).split())
    for kinds, text in _EXPLANATIONS:
        if isinstance(error, kinds):
            return f"{text} ({info})"
    return info


_EXPLANATIONS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    (
        (ldap.SERVER_DOWN,),
        "cannot reach it, or its TLS does not match the URL; check the address and the scheme",
    ),
    ((ldap.CONNECT_ERROR,), "TLS failed; check topics.ca_file and the name in the server's certificate"),
    ((ldap.PROTOCOL_ERROR,), "the server rejected the protocol; if it has no TLS, unset topics.start_tls"),
    ((ldap.TIMEOUT, ldap.TIMELIMIT_EXCEEDED), "no answer in time; check the server, or raise topics.timeout"),
    (
        (ldap.INVALID_CREDENTIALS,),
        "the bind DN or its password is wrong; check topics.bind_dn and topics.password_file",
    ),
    (
        (ldap.INSUFFICIENT_ACCESS, ldap.STRONG_AUTH_REQUIRED),
        "no permission; name a bind DN that may do this and its password file",
    ),
    ((ldap.CONFIDENTIALITY_REQUIRED,), "the server requires TLS; use ldaps:// or set topics.start_tls"),
    (
        (ldap.NO_SUCH_OBJECT,),
        "there is no such entry, or it is not visible to the bind DN; add it, or correct the URL",
    ),
    ((ldap.ALREADY_EXISTS,), "the entry exists already; remove it, or choose another name"),
    (
        (ldap.UNDEFINED_TYPE, ldap.INVALID_SYNTAX, ldap.OBJECT_CLASS_VIOLATION),
        "the server rejects the entry; load the files of ldap_schema into it, *.schema or *.ldif",
    ),
    (
        (ldap.SIZELIMIT_EXCEEDED, ldap.ADMINLIMIT_EXCEEDED),
        "it sends only some of the entries; raise the server's size limit for the bind DN",
    ),
)

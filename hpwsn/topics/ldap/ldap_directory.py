"""The topic directory in OpenLDAP, for the commands that edit it and for a node that loads it.

Each call opens its own connection and reads the tree first, so topics are found whatever the names of their
entries. LDAP cannot change several entries atomically: additions go parents first, removals leaves first, and
additions precede removals. An edit that conflicts with a concurrent one reads the tree again and retries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import ldap

from hpwsn.topics.directory.directory import Access, Planner, Progress, TopicDirectoryError, no_progress
from hpwsn.topics.editing.edit_plan import EditPlan
from hpwsn.topics.ldap.entries.dn import split_dn
from hpwsn.topics.ldap.entries.mirror import Mirror
from hpwsn.topics.ldap.entries.topic_entry import attributes_of, caseless, own_namespace, rdn_of
from hpwsn.topics.ldap.ldap_connection import (
    Location,
    check_files,
    connect,
    errors,
    parse_location,
    read_entries,
)
from hpwsn.topics.ldap.ldap_editing import CONFLICTS, PERMISSIVE, LdapEditing, modifications
from hpwsn.topics.ldap.ldap_watch import LdapWatch
from hpwsn.topics.tree.declarations import (
    Declaration,
    EditError,
    Report,
    merge_declarations,
    missing_topics,
    move_topic,
    remove_topic,
)
from hpwsn_client.wsn.topics.topic_expressions import Topic

ATTEMPTS = 8
"""Maximum number of attempts of an edit with conflicts."""
IN_FLIGHT = 64
"""Maximum number of requests without a response."""

_Known = dict[Topic, Declaration]
_Send = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests of one edit; the groups are sent in order, and each completes before the next."""

    groups: Sequence[Sequence[_Send]]

    @property
    def total(self) -> int:
        return sum(map(len, self.groups))


class LdapDirectory:
    """Declared topics below one entry of a server; nothing is kept between calls."""

    remote = True

    def __init__(self, url: str, access: Access) -> None:
        self.location: Location = parse_location(url)
        self.access = access
        # Fail at start: a missing file does not appear by retrying.
        check_files(access)

    @property
    def identity(self) -> str:
        """The base DN, which is the same for all replicas of a server."""
        return self.location.base

    def load(self) -> list[Declaration]:
        """Return all declared topics, breadth-first, each after its parent."""
        connection = self._connect()
        try:
            return list(self._read(connection).values())
        finally:
            _close(connection)

    @property
    def source(self) -> str:
        """The URL."""
        return str(self.location)

    def edit(self, plan: Planner, dry_run: bool = False) -> EditPlan:
        """Carry out a plan step by step; if one fails, those before it are undone."""
        connection = self._connect()
        try:
            for attempt in range(1, ATTEMPTS + 1):
                made = plan(self._read(connection))
                if dry_run:
                    return made
                try:
                    LdapEditing(connection, self.location, self.access, made).carry_out()
                    return made
                except TopicDirectoryError as error:
                    if attempt == ATTEMPTS or not isinstance(error.__cause__, CONFLICTS):
                        raise
            raise AssertionError("every attempt returns or raises")
        finally:
            _close(connection)

    def watch(self, report: Callable[[Report], None]) -> LdapWatch:
        """Return a watcher thread that loads the tree and follows it by syncrepl."""
        return LdapWatch(self.location, self.access, report)

    def add(self, declaration: Declaration) -> None:
        """Declare a topic and its missing parents; for an existing one, set the non-empty fields."""
        self.replace((declaration,), merge=True)

    def remove(self, topic: Topic, recursive: bool = False) -> None:
        """Remove a topic; one with children needs `recursive`."""

        def plan(known: _Known) -> _Requests:
            kept = {each.topic for each in remove_topic(known.values(), topic, recursive)}
            return _Requests(list(_deletions(known[gone] for gone in known if gone not in kept)))

        self._edit(plan)

    def move(self, topic: Topic, new: Topic) -> None:
        """Move a topic and its subtree, which is one rename in the directory."""

        def plan(known: _Known) -> _Requests:
            move_topic(known.values(), topic, new)
            made = self._additions(known, _parents(new, known))
            return _Requests([*made, _plain_namespace(known[topic]), [self._rename(known, topic, new)]])

        self._edit(plan)

    def replace(
        self, declarations: Iterable[Declaration], merge: bool = False, progress: Progress = no_progress
    ) -> None:
        """Declare exactly these topics, or with `merge` add them to the existing ones."""
        given = list(declarations)

        def plan(known: _Known) -> _Requests:
            wanted = merge_declarations(known.values() if merge else (), given)
            names = {each.topic for each in wanted}
            made = self._additions(known, [each for each in wanted if each.topic not in known])
            changed = [_change(known[each.topic], each) for each in wanted if each.topic in known]
            gone = _deletions(known[topic] for topic in known if topic not in names)
            return _Requests([*made, [send for send in changed if send is not None], *gone])

        self._edit(plan, progress)

    # Edits

    def _edit(self, plan: Callable[[_Known], _Requests], progress: Progress = no_progress) -> None:
        connection = self._connect()
        try:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    return self._carry_out(connection, plan(self._read(connection)), progress)
                except EditError as error:
                    raise TopicDirectoryError(f"topic directory {self.location}: {error}") from None
                except TopicDirectoryError as error:
                    if attempt == ATTEMPTS or not isinstance(
                        error.__cause__, (ldap.ALREADY_EXISTS, ldap.NO_SUCH_OBJECT)
                    ):
                        raise
        finally:
            _close(connection)

    def _carry_out(self, connection: Any, requests: _Requests, progress: Progress) -> None:
        done, total = 0, requests.total
        for group in requests.groups:
            in_flight: deque[int] = deque()
            for send in group:
                with errors(self.location):
                    in_flight.append(send(connection))
                    if len(in_flight) >= IN_FLIGHT:
                        connection.result3(in_flight.popleft(), timeout=self.access.timeout)
                done += 1
                progress(done, total)
            while in_flight:
                with errors(self.location):
                    connection.result3(in_flight.popleft(), timeout=self.access.timeout)

    def _connect(self) -> Any:
        return connect(self.location, self.access)

    def _read(self, connection: Any) -> _Known:
        mirror = Mirror(self.location.base)
        for entry in read_entries(connection, self.location, self.access):
            mirror.put(entry)
        mirror.changes()
        return {each.topic: each for each in mirror.declarations()}

    def _additions(self, known: _Known, new: Iterable[Declaration]) -> list[list[_Send]]:
        """Return the requests for new entries, grouped by level."""
        paths = {topic: each.path or "" for topic, each in known.items()}
        names = {caseless(topic) for topic in known}
        levels: list[list[_Send]] = []
        for _, level in groupby(new, key=lambda each: len(each.topic.path)):
            levels.append([self._addition(each, paths, names) for each in level])
        return levels

    def _addition(
        self, declaration: Declaration, paths: dict[Topic, str], names: set[tuple[str, str, str]]
    ) -> _Send:
        topic = declaration.topic
        exact = caseless(topic) in names
        names.add(caseless(topic))
        above = self.location.base if topic.parent is None else paths[topic.parent]
        path = paths[topic] = f"{rdn_of(topic, exact)},{above}"
        values = attributes_of(declaration, exact).items()
        attributes = [(name, [value.encode() for value in each]) for name, each in values]
        return lambda connection: connection.add_ext(path, attributes)

    def _rename(self, known: _Known, topic: Topic, new: Topic) -> _Send:
        others = {caseless(each) for each in known if each != topic}
        rdn = rdn_of(new, caseless(new) in others)
        parent = new.parent
        above = self.location.base if parent is None else self._path(known, parent)
        path = known[topic].path
        return lambda connection: connection.rename(path, rdn, above, 1)

    def _path(self, known: _Known, topic: Topic) -> str:
        """Return the DN of a topic, or its future DN if it is not added yet."""
        if topic in known:
            return known[topic].path or ""
        parent = topic.parent
        above = self.location.base if parent is None else self._path(known, parent)
        exact = caseless(topic) in {caseless(each) for each in known}
        return f"{rdn_of(topic, exact)},{above}"


def _plain_namespace(declaration: Declaration) -> list[_Send]:
    """Remove the namespace attribute if it is not in the RDN, since a rename would keep it."""
    path = declaration.path or ""
    namespace, _ = own_namespace(declaration.topic)
    if namespace is None or "hpwsnnamespace=" in split_dn(path)[0].lower():
        return []
    return [lambda connection: connection.modify_ext(path, [(ldap.MOD_DELETE, "hpwsnNamespace", None)])]


def _parents(topic: Topic, known: _Known) -> list[Declaration]:
    return [Declaration(each) for each in missing_topics(topic, known)[:-1]]


def _deletions(gone: Iterable[Declaration]) -> Iterator[list[_Send]]:
    deepest = sorted(gone, key=lambda each: -len(each.topic.path))
    for _, level in groupby(deepest, key=lambda each: len(each.topic.path)):
        yield [_deletion(each.path or "") for each in level]


def _deletion(path: str) -> _Send:
    return lambda connection: connection.delete_ext(path)


def _change(old: Declaration, new: Declaration) -> _Send | None:
    """Return the request that updates an entry; None if nothing changes."""
    changes = modifications(old, new)
    if not changes:
        return None
    return lambda connection: connection.modify_ext(old.path, changes, serverctrls=[PERMISSIVE])


def _close(connection: Any) -> None:
    try:
        connection.unbind_s()
    except ldap.LDAPError:
        return  # the connection is already closed

"""The topic directory in OpenLDAP, for the commands that edit it and for a node that loads it.

Each call opens a connection of its own and reads the tree first, so that topics are found whatever their
entries are called. Several entries cannot be changed in one step: what is added goes parents first, what is
removed leaves first, and additions before removals. An edit that meets another one at the same place reads
the tree again and tries anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import ldap

from hpwsn.topics.directory.directory import Access, Progress, TopicDirectoryError, no_progress
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
"""How often an edit is tried that others disturb."""
IN_FLIGHT = 64
"""Requests sent before the first of them is answered."""

_CONFLICTS = (ldap.ALREADY_EXISTS, ldap.NO_SUCH_OBJECT)
_Known = dict[Topic, Declaration]
_Send = Callable[[Any], int]


@dataclass(frozen=True, slots=True)
class _Requests:
    """Requests that one connection carries together, in the order of their groups."""

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
        # A file that is missing now is for whoever starts something to mend: no later try would.
        check_files(access)

    @property
    def identity(self) -> str:
        """What a saved tree belongs to, whichever server of a group it came from."""
        return self.location.base

    def load(self) -> list[Declaration]:
        """All declared topics, breadth-first, each after its parent."""
        connection = self._connect()
        try:
            return list(self._read(connection).values())
        finally:
            _close(connection)

    def watch(self, report: Callable[[Report], None]) -> LdapWatch:
        """A watcher that loads the tree and follows it by syncrepl, in a thread of its own."""
        return LdapWatch(self.location, self.access, report)

    def add(self, declaration: Declaration) -> None:
        """Declare a topic and its missing parents; of one that exists, change what is filled in."""
        self.replace((declaration,), merge=True)

    def remove(self, topic: Topic, recursive: bool = False) -> None:
        """Remove a topic; one with topics below it only where `recursive`."""

        def plan(known: _Known) -> _Requests:
            kept = {each.topic for each in remove_topic(known.values(), topic, recursive)}
            return _Requests(list(_deletions(known[gone] for gone in known if gone not in kept)))

        self._edit(plan)

    def move(self, topic: Topic, new: Topic) -> None:
        """Give a topic and its subtree another place, which is one rename in the directory."""

        def plan(known: _Known) -> _Requests:
            move_topic(known.values(), topic, new)
            made = self._additions(known, _parents(new, known))
            return _Requests([*made, _plain_namespace(known[topic]), [self._rename(known, topic, new)]])

        self._edit(plan)

    def replace(
        self, declarations: Iterable[Declaration], merge: bool = False, progress: Progress = no_progress
    ) -> None:
        """Declare exactly these topics, or with `merge` add each of them to what is there."""
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
                    if attempt == ATTEMPTS or not isinstance(error.__cause__, _CONFLICTS):
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
        """Requests for new entries, those of each level together."""
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
        """Where a topic is, or will be once it is added."""
        if topic in known:
            return known[topic].path or ""
        parent = topic.parent
        above = self.location.base if parent is None else self._path(known, parent)
        exact = caseless(topic) in {caseless(each) for each in known}
        return f"{rdn_of(topic, exact)},{above}"


def _plain_namespace(declaration: Declaration) -> list[_Send]:
    """Takes the namespace off an entry that does not have it in its name, where a rename would leave it."""
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
    """The request that makes an entry say what is new, None where it does already."""
    values = {"description": (old.description, new.description), "hpwsnRouting": (old.routing, new.routing)}
    changes = [
        (ldap.MOD_REPLACE, name, [after.encode()] if after else None)
        for name, (before, after) in values.items()
        if before != after
    ]
    return (lambda connection: connection.modify_ext(old.path, changes)) if changes else None


def _close(connection: Any) -> None:
    try:
        connection.unbind_s()
    except ldap.LDAPError:
        return  # it is gone already

"""A mirror of the topic entries of a directory, which turns changes of entries into changes of topics.

Pure. Entries arrive as the server reports them, in any order and with ids that survive a rename. A rename
moves all entries below it, which the server does not report. The cost follows the changed part of the tree.
An invalid entry is skipped with all entries below it, and kept with the reason until it is corrected.
"""

from collections.abc import Iterable, Iterator

from hpwsn.topics.ldap.entries.dn import Key, dn_key
from hpwsn.topics.ldap.entries.topic_entry import Entry, topic_of
from hpwsn.topics.tree.declarations import Change, Declaration
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Mirror:
    """The entries below a base, and their topics."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._root: Key = dn_key(base)
        self._entries: dict[str, Entry] = {}
        self._id_by_key: dict[Key, str] = {}
        self._children: dict[Key, dict[str, None]] = {}
        self._declared: dict[str, Declaration] = {}
        self._owners: dict[Topic, str] = {}
        self._skipped: dict[str, str] = {}
        self._duplicates: set[str] = set()
        self._dirty: dict[str, None] = {}
        self._before: dict[Topic, Declaration] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Entry) -> None:
        """Add an entry, or update a changed or renamed one."""
        old = self._entries.get(entry.id)
        if old == entry:
            return
        if old is None:
            self._link(entry)
            self._touch_below(entry.key)
        elif old.key != entry.key:
            self._touch_below(old.key)
            self._unlink(old)
            self._rebase(old.key, entry.key)
            self._link(entry)
        else:
            self._entries[entry.id] = entry
            if _identity(old) != _identity(entry):
                self._touch_below(entry.key)
        self._touch(entry.id)

    def discard(self, ids: Iterable[str]) -> None:
        """Remove deleted entries."""
        for id_ in ids:
            entry = self._entries.get(id_)
            if entry is not None:
                self._touch(id_)
                self._touch_below(entry.key)
                self._unlink(entry)
                del self._entries[id_]

    def keep(self, ids: Iterable[str]) -> None:
        """Remove all entries except these."""
        self.discard(self._entries.keys() - set(ids))

    def changes(self) -> Change:
        """Return the change of topics since the last call."""
        for id_ in self._duplicates:
            if id_ in self._entries:
                self._touch_below(self._entries[id_].key)
        dirty = self._dirty | dict.fromkeys(self._duplicates)
        if self._declared or self._skipped:
            for id_ in dirty:
                self._release(id_)
        found = [self._entries[id_] for id_ in dirty if id_ in self._entries]
        for entry in sorted(found, key=lambda entry: entry.order):
            self._claim(entry)
        declared = [self._declared[entry.id] for entry in found if entry.id in self._declared]
        before, self._before, self._dirty = self._before, {}, {}
        new = [declaration for declaration in declared if before.get(declaration.topic) != declaration]
        return Change(
            tuple(sorted(new, key=lambda declaration: len(declaration.topic.path))),
            tuple(topic for topic in before if topic not in self._owners),
        )

    def declarations(self) -> list[Declaration]:
        """Return all topics, breadth-first."""
        ids = sorted(self._declared, key=lambda id_: self._entries[id_].order)
        return [self._declared[id_] for id_ in ids]

    def skipped(self) -> tuple[str, ...]:
        """Return the entries that are not topics, each with the reason."""
        return tuple(f"{self._name(self._entries[id_])}: {self._skipped[id_]}" for id_ in self._skipped)

    def _link(self, entry: Entry) -> None:
        self._entries[entry.id] = entry
        self._id_by_key[entry.key] = entry.id
        self._children.setdefault(entry.parent, {})[entry.id] = None

    def _unlink(self, entry: Entry) -> None:
        if self._id_by_key.get(entry.key) == entry.id:
            del self._id_by_key[entry.key]
        below = self._children.get(entry.parent, {})
        below.pop(entry.id, None)
        if not below:
            self._children.pop(entry.parent, None)

    def _rebase(self, old: Key, new: Key) -> None:
        """Update the keys of all entries below a renamed one."""
        for id_ in list(self._children.get(old, ())):
            entry = self._entries[id_]
            moved = entry._replace(key=(entry.key[0], *new))
            self._unlink(entry)
            self._link(moved)
            self._rebase(entry.key, moved.key)

    def _touch(self, id_: str) -> None:
        self._dirty[id_] = None

    def _touch_below(self, key: Key) -> None:
        pending = [key]
        while pending:
            for id_ in self._children.get(pending.pop(), ()):
                self._dirty[id_] = None
                pending.append(self._entries[id_].key)

    def _release(self, id_: str) -> None:
        self._skipped.pop(id_, None)
        self._duplicates.discard(id_)
        declaration = self._declared.pop(id_, None)
        if declaration is not None:
            del self._owners[declaration.topic]
            self._before.setdefault(declaration.topic, declaration)

    def _claim(self, entry: Entry) -> None:
        try:
            declaration = self._declare(entry)
        except (ValueError, InvalidTopicExpressionFault) as error:
            self._skipped[entry.id] = " ".join(str(error).split())
            return
        owner = self._owners.setdefault(declaration.topic, entry.id)
        if owner == entry.id:
            self._declared[entry.id] = declaration
        else:
            self._duplicates.add(entry.id)
            self._skipped[entry.id] = (
                f"topic {declaration.topic} already is {self._name(self._entries[owner])}; remove one of them"
            )

    def _declare(self, entry: Entry) -> Declaration:
        if entry.fault is not None:
            raise ValueError(entry.fault)
        above: Declaration | None = None
        if entry.parent != self._root:
            above = self._declared.get(self._id_by_key.get(entry.parent, ""))
            if above is None:
                raise ValueError("the entry above it is not a topic")
        topic = topic_of(entry, None if above is None else above.topic)
        path = f"{entry.rdn},{self.base if above is None else above.path}"
        return Declaration(topic, entry.description, entry.routing, path, entry.visibility, entry.version)

    def _name(self, entry: Entry) -> str:
        return ",".join([*(each.rdn for each in self._path_to_root(entry)), self.base])

    def _path_to_root(self, entry: Entry) -> Iterator[Entry]:
        found: Entry | None = entry
        while found is not None:
            yield found
            found = self._entries.get(self._id_by_key.get(found.parent, ""))


def _identity(entry: Entry) -> tuple[object, ...]:
    """Return the fields of an entry that the entries below it depend on."""
    return entry.rdn, entry.name, entry.namespace, entry.fault

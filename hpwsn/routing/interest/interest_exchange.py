"""The exchange of interest: who is told what, when, and who is asked. Pure.

A node tells its representative what is wanted at it. The representative tells it on to the other nodes of
its cluster, so that these send straight to each other; it tells other representatives what its cluster
wants, and its nodes what all other clusters want together. Interest is state: versions are told as
differences, and whoever misses one asks for the whole. Whenever a source of interest changes, both sides
act: the new one tells, the others ask, so that it does not matter who heard of the change first. Versions
are compared now and then, so that nothing that got lost stays lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpwsn.routing.interest.interest_sets import Heard, Statement
from hpwsn.routing.interest.known_interest import Told
from hpwsn.routing.topology.cluster_view import View, Viewer
from hpwsn.routing.wire.effects import Effect, RouterSettings, Send
from hpwsn.routing.wire.patterns import EVERYTHING, parse_pattern
from hpwsn.routing.wire.router_messages import Ask, Interest, Message, Scope, Subject, Version, Versions


class Exchange:
    """One node's part in it."""

    def __init__(self, told: Told, viewer: Viewer, settings: RouterSettings) -> None:
        self._told = told
        self._viewer = viewer
        self._view = viewer.view
        self._settings = settings
        self._news = False
        self._told_at = -settings.settle
        self._compared_at: float | None = None
        self._strangers: set[Subject] = set()

    # What is wanted here.

    def local_changed(self, now: float) -> Iterator[Effect]:
        """What is wanted at this node has changed."""
        self._news = True
        return self._tell_soon(now)

    def tick(self, now: float) -> Iterator[Effect]:
        """Tell what has gathered, and compare versions where it is time."""
        yield from self._tell_soon(now)
        if self._compared_at is None:
            self._compared_at = now
        elif now - self._compared_at >= self._settings.refresh:
            self._compared_at = now
            self._forget_strangers()
            yield from self._compare()

    def _tell_soon(self, now: float) -> Iterator[Effect]:
        if self._news and now - self._told_at >= self._settings.settle:
            self._news, self._told_at = False, now
            yield from self._tell()

    def _tell(self) -> Iterator[Effect]:
        """Tell what has changed to all who are told."""
        own, lead, view = self._told.own.next(), self._told.lead, self._view
        if lead is None:
            yield from _send((view.representative,), own)
            return
        yield from _send(view.alive, own)
        yield from _send(view.others.values(), lead.cluster.next(self._told.cluster_complete()))
        yield from _send(view.alive, lead.foreign.next(self._told.foreign_complete()))

    def _compare(self) -> Iterator[Effect]:
        lead, view = self._told.lead, self._view
        if lead is None:
            yield from _send((view.representative,), _versions([self._told.own]))
            return
        yield from _send(view.others.values(), _versions([lead.cluster]))
        yield from _send(view.alive, self._for_nodes())

    def _for_nodes(self) -> Versions:
        """What a representative has for its nodes."""
        assert self._told.lead is not None
        relayed = tuple(Version(key, heard.incarnation, heard.version) for key, heard in self._nodes_heard())
        return Versions(_versions([self._told.own, self._told.lead.foreign]).entries + relayed)

    def _nodes_heard(self) -> list[tuple[Subject, Heard]]:
        return [(key, heard) for key, heard in self._told.heard.items() if key.scope is Scope.NODE]

    def _forget_strangers(self) -> None:
        """Forget nodes that no topology names: it may be late, but not for two rounds."""
        known = {Subject(Scope.NODE, name) for name in self._view.peers()}
        strangers = {key for key, _ in self._nodes_heard()} - known
        for key in strangers & self._strangers:
            self._told.forget(key)
        self._strangers = strangers

    # What changes around it.

    def view_changed(self, before: View, view: View) -> Iterator[Effect]:
        """Forget who is gone, take up or give up the lead, and turn to new sources."""
        self._view = view
        self._forget_gone(before, view)
        told = self._told
        if before.cluster is None:
            # What has gathered so far nobody could be told; the first word must say it all.
            told.own.next()
        if told.lead is not None and (not view.leads or before.cluster != view.cluster):
            told.cease_to_lead()
        if view.leads and told.lead is None:
            told.begin_to_lead(view)
            yield from self._begin_to_lead(view)
        elif view.leads:
            yield from self._lead_on(before, view)
        elif view.representative not in (None, before.representative):
            yield from self._follow(before, view)

    def _forget_gone(self, before: View, view: View) -> None:
        told = self._told
        told.generation += 1
        for name in set(before.peers()) - set(view.peers()):
            told.forget(Subject(Scope.NODE, name))
        for name in before.others.keys() - view.others.keys():
            told.forget(Subject(Scope.CLUSTER, name))
        self._news = True

    def _begin_to_lead(self, view: View) -> Iterator[Effect]:
        assert self._told.lead is not None
        yield from _send(view.others.values(), self._told.lead.cluster.whole())
        yield from self._ask_clusters(view.others)
        yield from _send(view.alive, self._for_nodes())

    def _lead_on(self, before: View, view: View) -> Iterator[Effect]:
        changed = [name for name, its in view.others.items() if its and its != before.others.get(name)]
        yield from self._ask_clusters(changed)
        new = [name for name, since in view.alive.items() if before.alive.get(name) != since]
        yield from _send(new, self._for_nodes())

    def _follow(self, before: View, view: View) -> Iterator[Effect]:
        own = self._told.own
        if before.cluster is None:
            # What it has for a node that is new here it says when it hears this.
            yield from _send((view.representative,), own.whole())
            return
        yield from _send((view.representative,), _versions([own]))
        yield from _send((view.representative,), Ask((Subject(Scope.FOREIGN, view.representative or ""),)))

    def _ask_clusters(self, names: Iterable[str]) -> Iterator[Effect]:
        for name in names:
            yield from _send((self._view.others[name],), Ask((Subject(Scope.CLUSTER, name),)))

    def link_up(self, peer: str) -> Iterator[Effect]:
        """What was sent to the peer before may be lost: compare versions with it."""
        lead, view = self._told.lead, self._view
        if peer == view.representative:
            yield from _send((peer,), _versions([self._told.own]))
        elif lead is not None and peer in view.alive:
            yield from _send((peer,), self._for_nodes())
        elif lead is not None and peer in view.others.values():
            yield from _send((peer,), _versions([lead.cluster]))

    # What others say.

    def interest(self, sender: str, message: Interest, now: float) -> Iterator[Effect]:
        """Another node tells an interest."""
        if not self._may_state(sender, message.subject):
            return
        for text in (*message.added, *message.removed):
            if text != EVERYTHING:
                parse_pattern(text)
        taken = self._told.take(sender, message)
        if taken is None:
            yield from _send((sender,), Ask((message.subject,)))
            return
        before, news = taken
        if news and self._told.lead is not None:
            if message.subject.scope is Scope.NODE:
                yield from self._relay(message.subject, before, message)
            self._news = True
            yield from self._tell_soon(now)

    def _relay(self, subject: Subject, before: int, message: Interest) -> Iterator[Effect]:
        """Tell the other nodes; as the difference that it was where it was one."""
        told_on = message if message.base == before else self._whole_of(subject)
        yield from _send([name for name in self._view.alive if name != subject.name], told_on)
        if not before:
            # It has just started, and knows nothing.
            yield from _send((subject.name,), self._for_nodes())

    def versions(self, sender: str, message: Versions) -> Iterator[Effect]:
        """Another node says what it has."""
        lacking = [
            entry.subject
            for entry in message.entries
            if self._may_state(sender, entry.subject) and self._told.lacks(entry, sender)
        ]
        if lacking:
            yield from _send((sender,), Ask(tuple(lacking)))

    def ask(self, sender: str, message: Ask) -> Iterator[Effect]:
        """Another node asks for interests."""
        for subject in message.subjects:
            yield from _send((sender,), self._whole_of(subject))
        if self._told.lead is not None and any(each.scope is Scope.FOREIGN for each in message.subjects):
            yield from _send((sender,), self._for_nodes())

    def _whole_of(self, subject: Subject) -> Interest | None:
        """What this node can say of a subject."""
        lead = self._told.lead
        if subject == self._told.me:
            return self._told.own.whole()
        if lead is None:
            return None
        for statement in (lead.cluster, lead.foreign):
            if statement.subject == subject:
                return statement.whole()
        heard = self._told.heard.get(subject) if subject.scope is Scope.NODE else None
        if heard is None:
            return None
        texts = tuple(sorted(heard.table.texts))
        return Interest(subject, heard.incarnation, heard.version, 0, texts, (), heard.complete)

    def _may_state(self, sender: str, subject: Subject) -> bool:
        """Whether the sender is who speaks for the subject, as far as this node knows."""
        scope, name = subject
        view = self._view
        if scope is Scope.CLUSTER:
            return view.leads and view.others.get(name) == sender
        if scope is Scope.FOREIGN:
            return sender == view.representative and not view.leads
        if name == view.name:
            return False
        its_own = name == sender and self._viewer.cluster_of(sender) in (None, view.cluster)
        return its_own or sender == view.representative


def _versions(statements: Iterable[Statement]) -> Versions:
    return Versions(tuple(Version(each.subject, each.incarnation, each.version) for each in statements))


def _send(to: Iterable[str | None], message: Message | None) -> Iterator[Effect]:
    """Interest goes by TCP; to nobody where there is nobody or nothing."""
    names = tuple(name for name in to if name is not None)
    if names and message is not None:
        yield Send(names, message, stream=True)

"""The registry of publisher registrations: create, renew, destroy, and restore after a restart.

Follows WS-BrokeredNotification 1.3, sections 4.3 (RegisterPublisher) and 5 (DestroyRegistration). Every
change is in the journal before its answer is sent. A repeated request with the same publisher, topics and
demand renews the existing registration. A publisher without a PublisherReference has no identity, so each
request creates a registration. With `registrations.required`, the registry also decides who may publish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol

from hpwsn.broker.lifetimes.leases import Lifetimes, end_of
from hpwsn.broker.push.request import parse_target
from hpwsn.broker.registrations.registered_publisher import Registration
from hpwsn.broker.subscriptions.resource_addresses import PLAIN_IDS, ResourceIds, own_path
from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.journal.journal import Journal
from hpwsn.journal.store.records import RegistrationRecord
from hpwsn.listeners import Listeners
from hpwsn.settings import RegistrationsSettings
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.operations.messages import encode_message, parse_message
from hpwsn_client.wsn.operations.notifications import (
    MESSAGE_CLOSE,
    NotificationMessage,
    join_notification,
    parse_notification_message,
)
from hpwsn_client.wsn.operations.registrations import RegisterPublisher
from hpwsn_client.wsn.soap import faults
from hpwsn_client.wsn.soap.envelope import SoapVersion
from hpwsn_client.wsn.soap.names import WSA_ANONYMOUS, WSA_NONE
from hpwsn_client.wsn.soap.payload_xml import parse_message_xml
from hpwsn_client.wsn.soap.times import Termination
from hpwsn_client.wsn.soap.xml import STORED_LIMITS, parse_xml
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import TopicExpression

EXPIRE_AGAIN = 5.0
"""Seconds until the removal of an expired registration is retried after the journal failed."""


class Watcher(Protocol):
    """Is told of changes to registrations; Demand implements it."""

    def begin(self, registration: Registration) -> None:
        """The registration was created or restored."""

    def repeat(self, registration: Registration) -> None:
        """Its publisher has registered again."""

    def end(self, registration: Registration) -> None:
        """The registration has ended."""


class Registrations:
    """The registry and life cycle of publisher registrations."""

    def __init__(
        self,
        *,
        tree: TopicTree[Subscriber],
        journal: Journal,
        watcher: Watcher,
        base_url: Callable[[], str],
        clock: Callable[[], float],
        settings: RegistrationsSettings,
        simple_subtree: bool,
        ids: ResourceIds = PLAIN_IDS,
    ) -> None:
        self._tree = tree
        self._journal = journal
        self._watcher = watcher
        self._base_url = base_url
        self._clock = clock
        self._settings = settings
        self._ids = ids
        self._simple_subtree = simple_subtree
        self._by_id: dict[str, Registration] = {}
        self._by_key: dict[Hashable, Registration] = {}
        self._by_publisher: dict[str, dict[Registration, None]] = {}
        self._lifetimes: Lifetimes[str] = Lifetimes()
        self.lifetimes_changed: Listeners[()] = Listeners("lifetimes of registrations")
        self.generation = 0
        """Changes with every registration, so that admission can drop cached answers."""

    @property
    def required(self) -> bool:
        """Whether only registered publishers may publish."""
        return self._settings.required

    async def register(self, request: RegisterPublisher, version: SoapVersion) -> Registration:
        """Create the registration, or renew the lease of the existing one."""
        now = self._clock()
        fault = faults.UnacceptableInitialTerminationTimeFault
        terminates = self._terminates(request.termination, now, fault)
        self._check(request)
        key = _key(request)
        while (repeated := self._by_key.get(key)) is not None and self._is_live(repeated):
            if await self._repeat(repeated, terminates):
                return repeated
        return await self._create(request, version, now, terminates)

    async def _repeat(self, registration: Registration, terminates: float | None) -> bool:
        """Renew the lease; False if the registration ended in the meantime."""
        try:
            await self._prolong(registration, terminates)
        except faults.ResourceUnknownFault:
            return False
        self._watcher.repeat(registration)
        return True

    def _check(self, request: RegisterPublisher) -> None:
        # An alternative costs as much as a topic whenever interest changes.
        named = sum(len(topic.patterns) for topic in request.topics)
        if named > self._settings.topics_limit:
            raise faults.PublisherRegistrationRejectedFault(
                f"{named} topics, counting each alternative of an expression, exceed the limit of"
                f" {self._settings.topics_limit} for one registration (registrations.topics_limit);"
                " register several times"
            )
        if request.demand:
            self._check_reachable(request)
        if self._tree.fixed:
            for expression in request.topics:
                self._check_supported(expression)

    def _check_reachable(self, request: RegisterPublisher) -> None:
        if request.publisher is None:
            raise _failed(
                "Demand is true and PublisherReference is missing; give the address to subscribe at"
            )
        address = request.publisher.address
        if address in (WSA_ANONYMOUS, WSA_NONE):
            raise _failed(
                f"PublisherReference {address} is not an address to subscribe at; give a service's address"
            )
        if (own_path(address, self._base_url()) or "").startswith(("/wsn", "/onvif")):
            raise _failed(
                f"PublisherReference {address} is this broker, which would loop; give another address"
            )
        try:
            parse_target(address)
        except ValueError as error:
            raise _failed(f"PublisherReference {shown(address)} cannot be reached: {error}") from error

    def _check_supported(self, expression: TopicExpression) -> None:
        if self._tree.keys((expression,), internal=True):
            return
        if expression.topic is not None:
            raise self._tree.unsupported(expression.topic)
        raise faults.TopicNotSupportedFault(
            f"none of the fixed topics of this broker matches {shown(expression.text)}"
        )

    async def _create(
        self, request: RegisterPublisher, version: SoapVersion, now: float, terminates: float | None
    ) -> Registration:
        if len(self._by_id) >= self._settings.limit:
            raise faults.PublisherRegistrationRejectedFault(
                f"this node holds its limit of {self._settings.limit} registrations"
                " (registrations.limit); end some or raise it"
            )
        registration = self._build(self._ids(), request, version, now, terminates)
        self._admit(registration)
        try:
            await self._journal.put_registration(_record(registration))
        except BaseException:
            self._remove(registration)
            raise
        self._watcher.begin(registration)
        return registration

    def _build(
        self,
        id_: str,
        request: RegisterPublisher,
        version: SoapVersion,
        created: float,
        terminates: float | None,
    ) -> Registration:
        address = f"{self._base_url()}/wsn/registrations/{id_}"
        return Registration(id_, request, version, created, terminates, address)

    def _admit(self, registration: Registration) -> None:
        self._by_id[registration.id] = registration
        key, publisher = _key(registration.request), registration.request.publisher
        if key is not None:
            self._by_key[key] = registration
        if publisher is not None:
            self._by_publisher.setdefault(publisher.address, {})[registration] = None
        self._watch(registration)

    def get(self, id_: str) -> Registration:
        """The registration by its id; ResourceUnknownFault if there is none, or it has ended."""
        registration = self._by_id.get(id_)
        if registration is None or not self._is_live(registration):
            raise faults.ResourceUnknownFault(
                f"registration {shown(id_)} does not exist here: it has ended, or was never created;"
                " register again"
            )
        return registration

    def _is_live(self, registration: Registration) -> bool:
        return registration.terminates is None or registration.terminates > self._clock()

    async def set_end(self, id_: str, termination: Termination) -> Registration:
        """Set a new termination time."""
        registration = self.get(id_)
        terminates = self._terminates(termination, self._clock(), faults.UnacceptableTerminationTimeFault)
        await self._prolong(registration, terminates)
        return registration

    async def _prolong(self, registration: Registration, terminates: float | None) -> None:
        before, registration.terminates = registration.terminates, terminates
        self._watch(registration)
        try:
            await self._journal.put_registration(_record(registration))
        except BaseException:
            if registration.id in self._by_id:
                registration.terminates = before
                self._watch(registration)
            raise
        if registration.id not in self._by_id:
            # It ended in the meantime and must not return after a restart.
            await self._journal.delete_registration(registration.id)
            self.get(registration.id)

    async def destroy(self, id_: str) -> None:
        """End the registration; Demand unsubscribes from its publisher when that can be reached."""
        await self._end(self.get(id_))

    async def _end(self, registration: Registration) -> None:
        await self._journal.delete_registration(registration.id)
        if registration.id in self._by_id:
            self._remove(registration)
            self._watcher.end(registration)

    def _remove(self, registration: Registration) -> None:
        self.generation += 1
        del self._by_id[registration.id]
        self._lifetimes.discard(registration.id)
        key, publisher = _key(registration.request), registration.request.publisher
        if key is not None and self._by_key.get(key) is registration:
            del self._by_key[key]
        if publisher is not None:
            same = self._by_publisher[publisher.address]
            del same[registration]
            if not same:
                del self._by_publisher[publisher.address]

    def check_publisher(self, before: bytes, id_: str | None) -> float:
        """Raise the fault if runs that start with `before` may not be published.

        `id_` is the registration to which they were sent, None for the broker. Returns the time until which
        the answer holds, provided that `generation` does not change.
        """
        registration = None if id_ is None else self.get(id_)
        if self._settings.required:
            message = _parse_beginning(before)
            known = self._registrations_of(message) if registration is None else (registration,)
            registration = self._covering(message, known)
        ends = None if registration is None else registration.terminates
        return math.inf if ends is None else ends

    def _registrations_of(self, message: NotificationMessage) -> tuple[Registration, ...]:
        if message.producer is None:
            return ()
        found = self._by_publisher.get(message.producer.address, ())
        return tuple(each for each in found if self._is_live(each))

    def _covering(self, message: NotificationMessage, known: tuple[Registration, ...]) -> Registration:
        if not known:
            raise faults.PublisherRegistrationRejectedFault(
                "only registered publishers may publish here (registrations.required): send"
                " RegisterPublisher, then Notify to the ConsumerReference of its response, or with your"
                " ProducerReference"
            )
        topic = None if message.topic is None else message.topic.topic
        for registration in known:
            if registration.covers(topic, self._simple_subtree):
                return registration
        raise faults.PublisherRegistrationRejectedFault(
            f"the publisher is not registered for {topic or 'notifications without a topic'};"
            f" its topics are {', '.join(each.text for one in known for each in one.topics)[:400]}"
        )

    def restore(self, records: Iterable[RegistrationRecord]) -> int:
        """Restore the registrations of the journal; return their number."""
        count = 0
        for record in records:
            request = parse_message(parse_xml(record.request, STORED_LIMITS), STORED_LIMITS)
            if not isinstance(request, RegisterPublisher):
                raise TypeError(
                    f"the journal's record of registration {record.id} is not a RegisterPublisher"
                )
            version = SoapVersion[record.version]
            registration = self._build(record.id, request, version, record.created, record.terminates)
            self._admit(registration)
            self._watcher.begin(registration)
            count += 1
        return count

    def next_due(self) -> float | None:
        """When the next lease ends; None if none does."""
        return self._lifetimes.next_due()

    async def expire(self, now: float) -> int:
        """End the registrations whose lease has ended; return how many were due."""
        due = [self._by_id[id_] for id_ in self._lifetimes.due(now) if id_ in self._by_id]
        try:
            for registration in due:
                if not self._is_live(registration):
                    await self._end(registration)
        finally:
            for registration in due:
                if registration.id in self._by_id and not self._is_live(registration):
                    self._lifetimes.set(registration.id, now + EXPIRE_AGAIN)
        return len(due)

    def _watch(self, registration: Registration) -> None:
        self.generation += 1
        self._lifetimes.set(registration.id, registration.terminates)
        self.lifetimes_changed()

    def _terminates(
        self,
        termination: Termination,
        now: float,
        fault: type[faults.UnacceptableInitialTerminationTimeFault | faults.UnacceptableTerminationTimeFault],
    ) -> float | None:
        longest = self._settings.max_lifetime
        return end_of(termination, now, fault, longest, "registrations.max_lifetime")

    def __iter__(self) -> Iterator[Registration]:
        return iter(list(self._by_id.values()))

    def __len__(self) -> int:
        return len(self._by_id)


def _key(request: RegisterPublisher) -> Hashable:
    """Equal for requests with the same publisher, topics and demand; None without a PublisherReference."""
    publisher = request.publisher
    if publisher is None:
        return None
    return publisher.address, publisher.reference_parameters, frozenset(request.topics), request.demand


def _record(registration: Registration) -> RegistrationRecord:
    return RegistrationRecord(
        id=registration.id,
        request=encode_message(registration.request),
        version=registration.version.name,
        created=registration.created,
        terminates=registration.terminates,
    )


def _failed(words: str) -> faults.PublisherRegistrationFailedFault:
    return faults.PublisherRegistrationFailedFault(words, code=faults.FaultCode.SENDER)


def _parse_beginning(before: bytes) -> NotificationMessage:
    """Parse the bytes before a payload, with a dummy payload, for their topic and producer."""
    content = before + b"<payload/>" + MESSAGE_CLOSE
    return parse_notification_message(parse_message_xml(join_notification(content), STORED_LIMITS))

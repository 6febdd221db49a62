"""The message ids of carried events, by which the log of a node says where an event came from. Pure.

    urn:hpwsn:carried:EPOCH:PREVIOUS:NUMBER:TIME:NAME

The id has all that another bundle needs, so that an event survives several hops without a table beside the
log. Every node that takes the event in gives it the same id; so it is recognised where a link and a carrier
bring the same event. Publishers must not use such ids: `check_publishers_id` refuses them.
"""

from __future__ import annotations

from typing import NamedTuple

from hpwsn.dtn.bundles.bundle import CarriedEvent, Origin

PREFIX = "urn:hpwsn:carried:"


class CarriedId(NamedTuple):
    """What the message id of a carried event says; `time` in microseconds since the epoch."""

    origin: Origin
    number: int
    previous: int
    time: int


def carried_id(event: CarriedEvent) -> str:
    """The message id of an event that a carrier brought."""
    name, epoch = event.origin
    return f"{PREFIX}{epoch:x}:{event.previous}:{event.number}:{event.time}:{name}"


def parse_carried_id(message_id: str | None) -> CarriedId | None:
    """What a message id says; None if it is not that of a carried event."""
    if message_id is None or not message_id.startswith(PREFIX):
        return None
    epoch, previous, number, time, name = message_id[len(PREFIX) :].split(":", 4)
    return CarriedId(Origin(name, int(epoch, 16)), int(number), int(previous), int(time))


def is_reserved(message_id: str | None) -> bool:
    """Whether a publisher must not use this id."""
    return message_id is not None and message_id.startswith(PREFIX)


def offered(text: str | None) -> CarriedId | None:
    """Like `parse_carried_id`, and None for an id that only begins like one."""
    try:
        return parse_carried_id(text)
    except ValueError:
        return None

"""The file of a bundle: CBOR (RFC 8949), authenticated with HMAC-SHA-256. Pure.

    "HPWSN-BUNDLE-1\\n"  header  event*  mac:32

Header and events are a CBOR sequence (RFC 8742). The header is an array: the place of the maker in the
origins, the node that the bundle is for, the carrier, the time it was made, the origins (name, epoch, size of
the community, floor), what the maker has (place of the origin, last number, gaps as a flat list), the number
of events. An event is an array: place of its origin, number, previous number, time, topic or null, payload.

The mac is that of all bytes before it, by the key that the nodes share. Nothing of a file is parsed before
its mac is verified, so that only the makers of bundles are trusted to be well-formed; the parser still
rejects every other form.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any

import cbor2

from hpwsn.dtn.bundles.bundle import Bundle, CarriedEvent, Known, Origin

MAGIC = b"HPWSN-BUNDLE-1\n"
MAC = 32
SHORTEST_KEY = 16
"""Bytes that a key needs."""
LONGEST_NAME = 255
"""Bytes in the name of a node or a carrier."""
MOST_NUMBER = 2**63 - 1


class BadBundle(ValueError):
    """A file is not a bundle of a node with the same key; the text says why."""


class BundleWriter:
    """Makes one file of at most `room` bytes, event by event; ValueError if the header alone is larger."""

    def __init__(self, bundle: Bundle, room: int) -> None:
        self._bundle = bundle
        self._places = {origin: place for place, origin in enumerate(_origins(bundle))}
        self._parts: list[bytes] = []
        # The header is written last, when floors and the number of events are known.
        longest = _header(bundle, self._places, dict.fromkeys(self._places, MOST_NUMBER), MOST_NUMBER)
        self.size = len(MAGIC) + len(longest) + MAC
        if self.size > room:
            raise ValueError(f"a bundle without events has {self.size} bytes already; allow more than {room}")
        self._room = room

    @property
    def events(self) -> int:
        """How many events there are in it so far."""
        return len(self._parts)

    def add(self, event: CarriedEvent) -> bool:
        """Add an event of a known origin; False if there is no room for it."""
        place = self._places[event.origin]
        fields = [place, event.number, event.previous, event.time, event.topic, event.payload]
        part = cbor2.dumps(fields)
        if self.size + len(part) > self._room:
            return False
        self._parts.append(part)
        self.size += len(part)
        return True

    def close(self, key: bytes, floors: Mapping[Origin, int]) -> bytes:
        """The whole file, with the floors of origins."""
        header = _header(self._bundle, self._places, floors, len(self._parts))
        whole = b"".join((MAGIC, header, *self._parts))
        return whole + hmac.digest(key, whole, sha256)


def encode_bundle(bundle: Bundle, key: bytes) -> bytes:
    """The file of a bundle with all its events."""
    writer = BundleWriter(bundle, MOST_NUMBER)
    for event in bundle.events:
        writer.add(event)
    return writer.close(key, bundle.floors)


def parse_bundle(data: bytes, key: bytes, most_events: int = MOST_NUMBER) -> Bundle:
    """The bundle in a file; BadBundle if it is damaged, forged, or has more events than allowed."""
    if not data.startswith(MAGIC):
        raise BadBundle(f"the file begins with {data[:15]!r}; a bundle begins with {MAGIC!r}")
    if len(data) < len(MAGIC) + MAC or not hmac.compare_digest(
        hmac.digest(key, data[:-MAC], sha256), data[-MAC:]
    ):
        raise BadBundle("the file is damaged or incomplete, or was made with another key (dtn.key_file)")
    try:
        return _parse(BytesIO(data[len(MAGIC) : -MAC]), most_events)
    except BadBundle:
        raise
    except (cbor2.CBORError, EOFError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise BadBundle(f"the file is authentic and malformed: {error}") from error


def _origins(bundle: Bundle) -> list[Origin]:
    """Every origin that the bundle names, each once; the maker first."""
    events = (event.origin for event in bundle.events)
    return list(dict.fromkeys((bundle.maker, *bundle.has, *bundle.sizes, *events)))


def _header(bundle: Bundle, places: Mapping[Origin, int], floors: Mapping[Origin, int], events: int) -> bytes:
    origins = [[*origin, bundle.sizes.get(origin, 1), floors.get(origin, 0)] for origin in places]
    has = [
        [places[origin], known.last, [number for gap in known.gaps for number in gap]]
        for origin, known in bundle.has.items()
    ]
    return cbor2.dumps([places[bundle.maker], bundle.to, bundle.carrier, bundle.made, origins, has, events])


def _parse(stream: BytesIO, most_events: int) -> Bundle:
    decoder = cbor2.CBORDecoder(stream)
    maker, to, carrier, made, listed, had, count = _array(decoder.decode(), 7)
    origins, sizes, floors = _read_origins(listed)
    has = {}
    for place, last, flat in (_array(each, 3) for each in had):
        bounds = [_number(each) for each in flat]
        has[_at(origins, place)] = Known(_number(last), tuple(zip(bounds[::2], bounds[1::2], strict=True)))
    if _number(count) > most_events:
        raise BadBundle(f"the bundle has {count} events, and {most_events} are accepted (dtn.bundle_events)")
    events = tuple(_read_events(decoder, count, origins))
    if stream.read(1):
        raise BadBundle("the file is authentic and malformed: there is more behind the last event")
    return Bundle(_at(origins, maker), _name(to), _name(carrier), _number(made), has, sizes, floors, events)


def _read_origins(listed: Any) -> tuple[list[Origin], dict[Origin, int], dict[Origin, int]]:
    sizes, floors = {}, {}
    for name, epoch, size, floor in (_array(each, 4) for each in listed):
        origin = Origin(_name(name), _number(epoch))
        if origin in sizes:
            raise ValueError(f"the origin {name} is listed twice")
        sizes[origin] = _number(size)
        if _number(floor):
            floors[origin] = floor
    return list(sizes), sizes, floors


def _read_events(decoder: Any, count: int, origins: Sequence[Origin]) -> Iterator[CarriedEvent]:
    for _ in range(count):
        place, number, previous, time, topic, payload = _array(decoder.decode(), 6)
        if not isinstance(payload, bytes) or not isinstance(topic, str | None):
            raise TypeError("a payload must be bytes, and a topic a text or null")
        if _number(previous) >= _number(number):
            raise ValueError(f"the event {number} is said to follow {previous}")
        yield CarriedEvent(_at(origins, place), number, previous, _number(time), topic, payload)


def _array(value: Any, length: int) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) != length:
        raise TypeError(f"an array of {length} values is expected")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MOST_NUMBER:
        raise ValueError("a whole number from 0 to 2^63 - 1 is expected")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or len(value.encode()) > LONGEST_NAME:
        raise ValueError(f"a name of at most {LONGEST_NAME} bytes is expected")
    return value


def _at(origins: Sequence[Origin], place: Any) -> Origin:
    return origins[_number(place)]


def encode_event(event: CarriedEvent) -> bytes:
    """An event alone, as a node keeps it while it is held."""
    (name, epoch), *rest = event
    return cbor2.dumps([name, epoch, *rest])


def parse_event(data: bytes) -> CarriedEvent:
    """An event that `encode_event` encoded."""
    name, epoch, *rest = cbor2.loads(data)
    return CarriedEvent(Origin(name, epoch), *rest)

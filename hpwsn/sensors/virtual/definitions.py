"""The definitions of virtual sensors that a node has, by name; the journal keeps them as documents.

A definition is stored when `put` returns, and replaces an earlier one of the same name. A name that was
removed and is defined again is a new virtual sensor: what was published before is not its past.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from hpwsn.errors import HpwsnError
from hpwsn.journal.journal import Journal
from hpwsn.sensors.physical.physical_sensor import SensorRefused
from hpwsn.sensors.templates.template import VirtualTemplate, parse_template

log = logging.getLogger(__name__)

KIND = "virtual"
"""The kind of the journal's documents."""
_CREATED = "created"


class TooManyDefinitions(HpwsnError):
    """The node has as many virtual sensors as it may."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the node has as many virtual sensors as sensors.virtual_limit allows ({limit}); remove some, or"
            " raise the limit"
        )


class Definitions:
    """The templates by name, and when each name was defined first."""

    def __init__(self, journal: Journal, *, limit: int, clock: Callable[[], float]) -> None:
        self._journal = journal
        self._limit = limit
        self._clock = clock
        self._templates: dict[str, VirtualTemplate] = {}
        self._created: dict[str, float] = {}

    def get(self, name: str) -> VirtualTemplate | None:
        """The template with this name, or None."""
        return self._templates.get(name)

    def created(self, name: str) -> float:
        """When a known name was defined first, in seconds since 1970."""
        return self._created[name]

    def __iter__(self) -> Iterator[VirtualTemplate]:
        return iter(self._templates.values())

    def __len__(self) -> int:
        return len(self._templates)

    async def put(self, templates: Sequence[VirtualTemplate]) -> None:
        """Store definitions, all or none; TooManyDefinitions and JournalUnavailable say why not."""
        named = {template.name: template for template in templates}
        if len(self._templates.keys() | named.keys()) > self._limit:
            raise TooManyDefinitions(self._limit)
        now = self._clock()
        created = {name: self._created.get(name, now) for name in named}
        documents = {
            name: json.dumps({_CREATED: created[name], **template.document()}, ensure_ascii=False).encode()
            for name, template in named.items()
        }
        await self._journal.put_documents(KIND, documents)
        self._templates |= named
        self._created |= created

    async def remove(self, name: str) -> None:
        """Forget a known name."""
        await self._journal.delete_documents(KIND, [name])
        del self._templates[name], self._created[name]

    def restore(self, documents: Mapping[str, bytes]) -> None:
        """Take up the definitions of the journal's documents after a restart."""
        for name, document in documents.items():
            try:
                found = json.loads(document)
                created = float(found.pop(_CREATED))
                self._templates[name] = parse_template(name, found)
            except (SensorRefused, ValueError, KeyError, AttributeError, TypeError) as error:
                log.error("the stored virtual sensor %s is not valid and is left out: %s", name, error)
            else:
                self._created[name] = created

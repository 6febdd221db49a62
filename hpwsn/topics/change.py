"""What is different between two states of a topic directory, which is what a running tree is told.

Pure data. In a change no topic is both declared and removed, and with a topic all below it are removed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hpwsn.topics.declaration import Declaration
from hpwsn_client.wsn.topics import Topic


@dataclass(frozen=True, slots=True)
class Change:
    """Topics that are new or say something else now, parents first, and topics that are gone."""

    declared: tuple[Declaration, ...] = ()
    removed: tuple[Topic, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.declared or self.removed)


@dataclass(frozen=True, slots=True)
class Report:
    """What a directory's watcher has to say.

    `change` is against the report before, or everything there is where `whole`; None says nothing about
    topics. `problem` is why the directory cannot be read at the moment, `skipped` what in it is no topic.
    """

    change: Change | None = None
    whole: bool = False
    problem: str | None = None
    skipped: tuple[str, ...] = ()


def difference(old: Mapping[Topic, Declaration], new: Iterable[Declaration]) -> Change:
    """The change that leads from one set of declared topics to another, which is in breadth-first order."""
    wanted = {declaration.topic: declaration for declaration in new}
    return Change(
        tuple(declaration for topic, declaration in wanted.items() if old.get(topic) != declaration),
        tuple(topic for topic in old if topic not in wanted),
    )

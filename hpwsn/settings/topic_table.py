"""A setting that is a table with a word for each topic, such as `"traffic:anpr" = "cma"`.

In TOML it is a table. In the environment and after `--set` it is one text, `A:B=word,C=word`; a topic whose
namespace has a comma can only be written in the file. Every bad entry is reported by itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hpwsn.settings.quantities import Choice, Text
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic import Topic

Entries = tuple[tuple[str, str], ...]
"""Topics as `A:B:C`, each with its word."""


class EntryErrors(ValueError):
    """The bad entries of a table: the key, the value and the remedy of each."""

    def __init__(self, entries: Iterable[tuple[str, object, str]]) -> None:
        self.entries = tuple(entries)
        super().__init__("; ".join(f"{key!r} {remedy}" for key, _, remedy in self.entries))


@dataclass(frozen=True, slots=True)
class TopicTable:
    """One of a fixed set of words for each topic; the topic's own entry counts for all topics below it."""

    choices: tuple[str, ...]

    def parse(self, value: object) -> Entries:
        """The entries in the order given; EntryErrors for those that are wrong."""
        entries: dict[str, str] = {}
        errors: list[tuple[str, object, str]] = []
        for key, word in self._pairs(value):
            try:
                topic = _topic(key)
                if topic in entries:
                    raise ValueError(f"names the topic {topic} a second time; keep one of the two")
                entries[topic] = self._word(word)
            except ValueError as error:
                errors.append((key, word, str(error)))
        if errors:
            raise EntryErrors(errors)
        return tuple(entries.items())

    def _pairs(self, value: object) -> Iterable[tuple[str, object]]:
        if isinstance(value, Mapping):
            return [(str(key), word) for key, word in value.items()]
        if isinstance(value, str):
            # A namespace may contain "=", a word may not.
            parts = [part.rpartition("=") for part in value.split(",") if part.strip()]
            if all(equals for _, equals, _ in parts):
                return [(key.strip(), word.strip()) for key, _, word in parts]
        elif isinstance(value, tuple):
            return value
        raise ValueError(self.describe())

    def _word(self, word: object) -> str:
        try:
            return Choice(choices=self.choices).parse(word)
        except ValueError as error:
            raise ValueError(f"must be {error}") from None

    def describe(self) -> str:
        """The form of the table, without its words, which another setting has."""
        return f'a table, such as {{ "A:B" = "{self.choices[0]}" }}, or the text A:B={self.choices[0]},C=…'

    def format(self, value: object) -> str:
        """The entries as an inline table of TOML."""
        quoted = Text().format
        pairs = value if isinstance(value, tuple) else ()
        inside = ", ".join(f"{quoted(topic)} = {quoted(word)}" for topic, word in pairs)
        return f"{{ {inside} }}" if inside else "{}"


def _topic(text: str) -> str:
    try:
        return str(Topic.parse(text))
    except InvalidTopicExpressionFault as fault:
        raise ValueError(f"is not a topic: {fault.description}") from None

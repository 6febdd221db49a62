"""The options of the data source for reading: names, defaults and checks.

The names and meanings are those of Spark's Kafka source: a start is the first offset or time that is read, an
end is the first that is not. Earlier names of this source (`topic`, `start`, `rows`, `partitions`) remain.
Names that are not listed here are ignored, because Spark adds its own; a wrong value is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hpwsn.errors import HpwsnError
from hpwsn.streams.spark.reading.broker_link import node_token
from hpwsn_client.environment import broker_url

MAX_ROWS = 50_000
"""Default of `maxOffsetsPerTrigger`, the maximum events per batch of a stream."""
EARLIEST, LATEST = "earliest", "latest"
_WORDS = {"true": True, "false": False}


@dataclass(frozen=True)
class ReadOptions:
    """What to read; offsets and times are those of the node's log.

    `start` is EARLIEST, LATEST or the first offset, `end` LATEST or the first offset that is not read. The
    times are milliseconds since 1970; None means that the offsets apply. `past` is the folder of kept
    readings with which a stream begins instead of `start`; empty for none.
    """

    url: str
    topics: tuple[str, ...]
    start: str | int
    end: str | int = LATEST
    start_time: int | None = None
    end_time: int | None = None
    limit: int = MAX_ROWS
    partitions: int = 1
    key: str = ""
    past: str = ""
    fail_on_data_loss: bool = True
    infer_schema: bool = False
    token: str = field(default_factory=node_token, repr=False)
    """The node's token, from the environment of the driver; empty without one."""

    @property
    def subject(self) -> str:
        """The topics for messages."""
        return ", ".join(self.topics)


class OptionError(HpwsnError):
    """An option of the data source has a value that cannot be used."""


def parse_read_options(given: Mapping[str, str], *, stream: bool) -> ReadOptions:
    """Check the options of a batch or of a stream; OptionError names the option, the value and the remedy."""
    options = {name.lower(): value.strip() for name, value in given.items()}
    for name in ("endingOffsets", "endingTimestamp"):
        if stream and name.lower() in options:
            raise OptionError(f"the option {name} is only for batches; stop a stream with its query")
    return ReadOptions(
        url=_url(options.get("url")),
        topics=_topics(options.get("subscribe") or options.get("topic", "")),
        start=_start(options, LATEST if stream else EARLIEST),
        end=_position("endingOffsets", options.get("endingoffsets", LATEST), (LATEST,)),
        start_time=_number(options, "startingTimestamp", None, least=0),
        end_time=_number(options, "endingTimestamp", None, least=0),
        limit=_number(options, "maxOffsetsPerTrigger", _number(options, "rows", MAX_ROWS)) or MAX_ROWS,
        partitions=_number(options, "minPartitions", _number(options, "partitions", 1)) or 1,
        key=options.get("key", ""),
        past=options.get("past", ""),
        fail_on_data_loss=_truth(options, "failOnDataLoss", True),
        infer_schema=_truth(options, "inferSchema", False),
    )


def _url(given: str | None) -> str:
    try:
        return broker_url(given)
    except ValueError as error:
        raise OptionError(f"the option url: {error}") from None


def _topics(text: str) -> tuple[str, ...]:
    topics = tuple(part.strip() for part in text.split(","))
    if not all(topics):
        raise OptionError(
            f"the option subscribe is {text!r}; write one or more topics, such as traffic:flow, with commas"
        )
    return tuple(dict.fromkeys(topics))


def _start(options: Mapping[str, str], default: str) -> str | int:
    if "startingoffsets" in options or "start" not in options:
        return _position("startingOffsets", options.get("startingoffsets", default), (EARLIEST, LATEST))
    words: Mapping[str, str] = {"oldest": EARLIEST, "now": LATEST}
    if options["start"] in words:
        return words[options["start"]]
    # `start` is the last offset that is not read.
    return int(_position("start", options["start"], ("oldest", "now"))) + 1


def _position(name: str, text: str, words: tuple[str, ...]) -> str | int:
    if text in words:
        return text
    if not text.isascii() or not text.isdigit():
        raise OptionError(f"the option {name} is {text!r}; use {', '.join(words)} or an offset")
    return int(text)


def _number(options: Mapping[str, str], name: str, default: int | None, least: int = 1) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise OptionError(f"the option {name} is {text!r}; use an integer from {least} on")
    return int(text)


def _truth(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name.lower())
    if text is None:
        return default
    if text.lower() not in _WORDS:
        raise OptionError(f"the option {name} is {text!r}; use true or false")
    return _WORDS[text.lower()]

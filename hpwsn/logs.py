"""The log on standard error: one record per line, as text or as JSON, with times in UTC."""

import json
import logging
import time

from hpwsn.settings import LogSettings

QUIET = ("spyne", "asyncio", "aiohttp", "stomp.py")
"""Libraries of which only warnings and errors are logged."""


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO hpwsn.node: message`."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self.converter = time.gmtime


class JsonFormatter(TextFormatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, even if the message has line breaks."""
        fields = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def set_up_logging(settings: LogSettings) -> None:
    """Log all records of the process from the configured level to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if settings.format == "json" else TextFormatter())
    logging.basicConfig(level=settings.level.upper(), handlers=[handler], force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 subscription`, `2,000 subscriptions`."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"

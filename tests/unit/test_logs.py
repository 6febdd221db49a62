"""Log records as an operator, or a program, reads them."""

import json
import logging
import sys

from hpwsn.logs import JsonFormatter, TextFormatter, counted


def _record(message: str, error: bool = False) -> logging.LogRecord:
    information = None
    if error:
        try:
            raise ValueError("broken")
        except ValueError:
            information = sys.exc_info()
    record = logging.LogRecord("hpwsn.node", logging.WARNING, "node.py", 1, message, None, information)
    record.created, record.msecs = 0.0, 250.0
    return record


def test_a_text_line_has_the_time_in_utc_the_level_and_the_logger() -> None:
    line = TextFormatter().format(_record("disk full"))
    assert line == "1970-01-01T00:00:00.250Z WARNING hpwsn.node: disk full"


def test_a_json_record_is_one_line_with_its_traceback() -> None:
    line = JsonFormatter().format(_record("two\nlines", error=True))
    fields = json.loads(line)
    assert "\n" not in line
    assert (fields["level"], fields["message"]) == ("warning", "two\nlines")
    assert "ValueError: broken" in fields["traceback"]


def test_one_thing_is_counted_in_the_singular() -> None:
    assert [counted(number, "pull point") for number in (0, 1, 2)] == [
        "0 pull points",
        "1 pull point",
        "2 pull points",
    ]

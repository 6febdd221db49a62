"""`hpwsn streams list`: the columns of its table, and wrong arguments."""

import pytest

from hpwsn.commands import streams_list
from hpwsn.commands.main import main


def test_a_service_is_a_row_of_a_table():
    service = {
        "uri": "urn:a",
        "constraints": {"n": "> 0"},
        "inputs": {"in": "topic a:b"},
        "figures": {"rows_per_second": 5.0, "lag": 2, "state_rows": 7, "failures": 0},
        "ui": "http://localhost:4040",
    }
    row = streams_list._row(service)
    assert row["constraints"] == ["n: > 0"]
    assert row["inputs"] == ["in: topic a:b"]
    assert (row["rows/s"], row["lag"], row["batch s"]) == (5.0, 2, None)
    assert (row["state rows"], row["failures"], row["ui"]) == (7, 0, "http://localhost:4040")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "1e9"])
def test_an_interval_that_makes_no_sense_is_named(seconds, capsys):
    assert main(["streams", "list", "--watch", seconds]) == 2
    assert "give the seconds between two answers" in capsys.readouterr().err


def test_the_first_list_says_that_there_is_no_node(capsys):
    assert main(["streams", "list", "--watch", "--url", "http://127.0.0.1:9/wsn"]) == 1
    assert "no node answers" in capsys.readouterr().err


def test_one_service_is_shown_with_the_reason_of_its_end_or_why_its_log_is_hidden():
    service = {"uri": "urn:a", "state": "failed", "plan": None, "log": [], "reason": None, "log_note": None}
    shown = streams_list._shown({**service, "reason": "no Java", "log": ["hpwsn: error: no Java", "at x"]})
    assert [line.split() for line in shown.splitlines() if line.startswith("reason")] == [
        ["reason", "no", "Java"]
    ]
    assert shown.endswith("the end of its log:\n  hpwsn: error: no Java\n  at x")
    hidden = streams_list._shown({**service, "log_note": "show the token"})
    assert "show the token" in hidden
    assert "reason" not in hidden
    assert "its log" not in hidden

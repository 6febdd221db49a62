"""The client's command line without a broker: arguments that cannot be, and a broker that goes away."""

import pytest

from hpwsn_client.commands.listen import _column_marked
from hpwsn_client.commands.main import main
from hpwsn_client.wsn.soap.faults import InvalidMessageContentExpressionFault


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--count", "many", "'many' is not a positive whole number"),
        ("--count", "0", "'0' is not a positive whole number"),
        ("--expires", "soon", "'soon' is not a positive number of seconds"),
        ("--expires", "nan", "'nan' is not a positive number of seconds"),
        ("--port", "65536", "'65536' is not a port, a number from 0 to 65535"),
        ("--port", "-1", "'-1' is not a port, a number from 0 to 65535"),
        ("--port", "http", "'http' is not a port, a number from 0 to 65535"),
    ],
)
def test_a_value_that_an_option_cannot_take_is_refused_in_words(
    option: str, value: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["listen", "A", f"{option}={value}"])
    assert ended.value.code == 2
    assert f"argument {option}: {words}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("expression", "column", "mark"),
    [("speed >> 60", 8, "       ^"), ("车牌 >> 60", 5, "      ^")],
)
def test_the_mark_stands_under_the_column_also_after_wide_characters(
    expression: str, column: int, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = InvalidMessageContentExpressionFault(f"it is no predicate: column {column}: '>'")
    with pytest.raises(InvalidMessageContentExpressionFault), _column_marked(expression):
        raise fault
    assert capsys.readouterr().err == f"  {expression}\n  {mark}\n"

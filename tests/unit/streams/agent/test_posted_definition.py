"""What a posted definition may contain: no code and no local files, unless the operator allows them."""

import pytest

from hpwsn.streams.agent.posted_definition import Allowed, read_posted
from hpwsn.streams.definition.problems import DefinitionError

HEAD = """\
uri = "urn:a"
topic = "a"
"""
TOPIC = """\
[inputs.one]
source = "topic"
topic = "b"
schema = "n INT"
"""
FILES = """\
[inputs.one]
source = "files"
path = "{}"
format = "csv"
schema = "n INT"
"""
CODE = """\
[[ops]]
op = "function"
function = "os:system"
schema = "n INT"
[[ops]]
op = "sql"
query = "SELECT reflect('java.lang.System', 'exit') FROM input"
"""


def problems(text: str, allowed: Allowed = Allowed()) -> list[tuple[int, str]]:  # noqa: B008
    with pytest.raises(DefinitionError) as error:
        read_posted(text, allowed)
    return [(one.place.line, str(one)) for one in error.value.problems]


def test_an_ordinary_definition_is_read() -> None:
    assert read_posted(HEAD + TOPIC, Allowed()).uri == "urn:a"


def test_functions_and_queries_are_refused_with_their_lines_unless_allowed() -> None:
    found = problems(HEAD + TOPIC + CODE)
    assert [line for line, _ in found] == [7, 11]
    assert all("streams.agent_functions" in text for _, text in found)
    assert read_posted(HEAD + TOPIC + CODE, Allowed(functions=True)).ops[0].op == "function"


@pytest.mark.parametrize("path", ["/data", "/data/a.csv", "/data/2024/*.csv"])
def test_files_in_the_folder_are_allowed(path: str) -> None:
    assert read_posted(HEAD + FILES.format(path), Allowed(folder="/data")).inputs


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/data/../etc/passwd", "/database/a.csv", "data/a.csv", "file:/etc/passwd", "s3://b/c"],
)
def test_other_files_are_refused(path: str) -> None:
    for allowed in (Allowed(), Allowed(folder="/data"), Allowed(functions=True)):
        ((line, text),) = problems(HEAD + FILES.format(path), allowed)
        assert (line, "streams.agent_folder" in text) == (3, True)


def test_kept_readings_are_files_too() -> None:
    past = TOPIC + 'past = "{}"\n'
    assert read_posted(HEAD + past.format("/data/readings"), Allowed(folder="/data")).inputs
    for path, folder in (("/data/readings", ""), ("/etc", "/data"), ("readings", "/data")):
        ((_, text),) = problems(HEAD + past.format(path), Allowed(folder=folder))
        assert "past" in text
        assert "streams.agent_folder" in text


def test_the_definition_of_another_service_is_never_read_from_a_file() -> None:
    other = '[inputs.one]\nsource = "service"\nservice = "urn:b"\nfile = "/tmp/code.py"\n'
    ((_, text),) = problems(HEAD + other, Allowed(True, "/tmp"))
    assert "give the topic and the schema" in text


def test_one_service_is_one_request() -> None:
    ((line, text),) = problems('[[services]]\nuri = "a"\n[[services]]\nuri = "b"\n')
    assert (line, "post one in each request" in text) == (3, True)


def test_text_that_is_not_toml_is_named_with_its_line() -> None:
    ((line, text),) = problems("uri = 'a'\n\nwhat\n")
    assert (line, "is not TOML" in text) == (3, True)

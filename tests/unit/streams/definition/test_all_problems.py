"""All problems of all files are reported in one run, and nothing that only follows from another problem."""

from pathlib import Path

import pytest

from hpwsn.commands.main import main
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.definition_files import load

TEN_MISTAKES = """\
[[services]]
uri = "urn:a"
topic = "a b"
colour = "red"

[services.inputs.anpr]
source = "topic"
topic = "traffic:anpr"
schema = "cid STRING, vid STRING, speed INT, time TIMESTAMP"
lateness = "a while"

[[services.ops]]
op = "filter"
where = "sped > 60"

[[services.ops]]
op = "count"
by = "cid"
window = "a minute"
colour = "blue"

[services.constraints]
flow = "quick >"

[[services]]
uri = "urn:b"
topic = "b"

[services.inputs.gps]
source = "topics"
topic = "fleet"
schema = "vid STRING, speed INT, time TIMESTAMP"

[[services.ops]]
op = "avg"
attribute = "vid"
by = "nobody"
window = "60 s"
output = "mean"

[[services]]
uri = "urn:b"
topic = "c"

[services.inputs.means]
source = "service"
service = "urn:b"
"""
LINES = [3, 4, 10, 14, 19, 20, 23, 30, 36, 37, 41]


def problems_of(*files: Path) -> list[tuple[str, int]]:
    with pytest.raises(DefinitionError) as caught:
        load(*files)
    return [(Path(one.place.file).name, one.place.line) for one in caught.value.problems]


def test_a_file_with_many_mistakes_gets_them_all_in_the_order_of_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(TEN_MISTAKES)
    assert problems_of(tmp_path / "a.toml") == [("a.toml", line) for line in LINES]


def test_all_files_are_checked_even_if_one_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("a", TEN_MISTAKES), ("b", "uri = "), ("c", 'uri = "urn:c"\ntopic = "c"\ninputs = 1')):
        (tmp_path / f"{name}.toml").write_text(text)
    files = [tmp_path / f"{name}.toml" for name in "bca"]
    assert [file for file, _ in problems_of(*files, tmp_path / "d.toml")] == [
        "b.toml",
        "c.toml",
        "c.toml",
        *["a.toml"] * len(LINES),
        "d.toml",
    ]
    assert main(["streams", "check", *map(str, files)]) == 1
    said = capsys.readouterr().err
    assert f"has {len(LINES) + 3} problems" in said
    assert f"{tmp_path}/a.toml:14: operator 1 (filter): sped: " in said


HEAD = 'uri = "urn:x"\ntopic = "x"\n[inputs.i]\nsource = "topic"\ntopic = "t"\n'


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # The operator after an input without a schema is checked as far as possible.
        (HEAD + '[[ops]]\nop = "count"\nwindow = "1 parsec"\nby = "any"\n', [3, 8]),
        (HEAD + '[[ops]]\nop = "count"\nwindow = 5\n', [3, 8]),
        (HEAD + 'schema = "n INT"\n[[ops]]\nop = 5\n', [8]),
        ('uri = "urn:x"\ntopic = "x"\n[[ops]]\nop = "filter"\nwhere = "n > 1"\n', [0]),
        ('uri = "urn:x"\ntopic = "x"\n[inputs]\ni = 5\n[[ops]]\nop = "merge"\nwith = ["i", "j"]\n', [4, 7]),
    ],
)
def test_what_follows_from_a_problem_is_not_a_problem(tmp_path: Path, text: str, lines: list[int]) -> None:
    (tmp_path / "a.toml").write_text(text)
    assert [line for _, line in problems_of(tmp_path / "a.toml")] == lines


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ('op = "sum"\nattribute = "a"\nby = ["b", "time"]\nwindow = "x"', {"a", "b", "time", "window"}),
        ('op = "incrMax"\nattribute = "a"\nby = "b"\nslide = "5 s"', {"a", "b", "slide"}),
        ('op = "sort"\nattribute = "a"\norder = "up"\nrank = "n"', {"a", "order", "n", "window"}),
        ('op = "project"\nattributes = ["a", "b", "n"]\ndefaults = { c = [] }', {"a", "b", "c"}),
        ('op = "join"\nwith = "j"\non = ["n", "z"]\nwindow = "?"', {"n", "z", "window"}),
        ('op = "merge"\nwith = "j"', {"n", "time"}),
        ('op = "function"\nfunction = "f"\nschema = "a"\nbatches = 1', {"function", "schema", "batches"}),
        ('op = "filter"\nwindow = "5 s"\nby = "n"\nhow = 1', {"window", "by", "how", "where"}),
    ],
)  # fmt: skip
def test_an_operator_gets_all_of_its_problems(tmp_path: Path, op: str, attributes: set[str]) -> None:
    text = HEAD + 'schema = "n INT, time TIMESTAMP"\n[inputs.j]\nsource = "topic"\ntopic = "t"\n'
    (tmp_path / "a.toml").write_text(text + f'schema = "n STRING"\n[[ops]]\ninput = "i"\n{op}\n')
    with pytest.raises(DefinitionError) as caught:
        load(tmp_path / "a.toml")
    found = {one.attribute for one in caught.value.problems if one.part.startswith("operator")}
    assert found == attributes


def test_python_files_name_the_line_that_failed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n\nx / 0\n")
    (tmp_path / "b.py").write_text("x = 1\nx = (\n")
    builder = "from hpwsn.streams.definition.builder import Service\n"
    (tmp_path / "c.py").write_text(
        builder
        + "a = Service('urn:a', topic='?')\nb = Service('urn:b', topic='b').input('i', source='rat')\n"
    )
    files = [tmp_path / f"{name}.py" for name in "abc"]
    assert problems_of(*files) == [("a.py", 3), ("b.py", 2), ("c.py", 2), ("c.py", 2), ("c.py", 3)]

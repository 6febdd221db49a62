"""Definitions in TOML and Python: what is wrong with them is named by line, operator and attribute."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.definition.definition import SOURCES
from hpwsn.streams.definition.definition_toml import parse_document
from hpwsn.streams.definition.positions import positions_of
from hpwsn.streams.definition.problems import DefinitionError
from hpwsn.streams.definition_files import load
from hpwsn.streams.operators import KINDS
from hpwsn.streams.plan.plan import build_plan

EXAMPLES = Path(__file__).parents[4] / "hpwsn" / "streams" / "examples"
HEAD = """\
uri = "urn:x"
topic = "a:b"
[inputs.anpr]
source = "topic"
topic = "traffic:anpr"
schema = "cid STRING, vid STRING, speed INT, time TIMESTAMP"
"""


def problems_of(text: str, file: str = "x") -> list[str]:
    """All that is wrong with a definition, as a person reads it."""
    try:
        for one in parse_document(text, file):
            build_plan(one)
    except DefinitionError as error:
        return [str(one) for one in error.problems]
    return []


def with_op(*lines: str) -> str:
    return HEAD + "\n".join(["[[ops]]", *lines, ""])


def test_a_definition_keeps_what_was_written_with_its_lines() -> None:
    (one,) = parse_document(
        with_op(
            'op = "count"',
            'by = "cid"',
            'window = "60 s"',
            'output = "flow"',
            "[constraints]",
            'flow = "> 0"',
        )
    )
    assert (one.uri, one.topic, one.inputs["anpr"].source) == ("urn:x", "a:b", "topic")
    assert one.ops[0].by == ("cid",)
    assert (one.ops[0].place.line, one.ops[0].at("window").line, one.ops[0].at("slide").line) == (7, 10, 7)
    assert one.constraints[0].place.line == 13
    assert one.ranges == {"flow": "> 0"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("uri = ", "x:1: is not TOML: Invalid value"),
        ('uri = "u"\ntopic = "a"', "x: service: inputs: write at least one [inputs.NAME]"),
        (HEAD.replace('uri = "urn:x"\n', ""), "x: service: uri: is missing"),
        (HEAD.replace('"a:b"', '"a b"'), "x:2: service: topic: "),
        ("colour = 1\n" + HEAD, "x:1: service: colour: is not a setting here; known: uri, topic"),
        (HEAD.replace('"topic"', '"topics"'), "x:4: input anpr: 'topics' is unknown; did you mean topic?"),
        (HEAD + "lateness = 'a while'", "x:7: input anpr: lateness: must be a duration"),
        (HEAD + "rate = 3", "x:7: input anpr: rate: is not a setting here; "),
        (HEAD.replace("time TIMESTAMP", "time TIME"), "x:3: input anpr: schema: time: unknown type TIME;"),
        (HEAD + 'time = "speed"', "x:3: input anpr: time: speed is INT; the event time must be"),
        (
            with_op('op = "cuont"'),
            "x:8: operator 1 (cuont): op: unknown operator; did you mean count?",
        ),
        (with_op('op = "count"'), "x:7: operator 1 (count): window: count requires a window"),
        (with_op('op = "sum"', 'window = "5 s"'), "x:7: operator 1 (sum): attribute: sum requires attribute"),
        (
            with_op('op = "sum"', 'attribute = "sped"', 'window = "5 s"'),
            "x:9: operator 1 (sum): sped: anpr has no such attribute; did you mean speed?",
        ),
        (
            with_op('op = "avg"', 'attribute = "cid"', 'window = "5 s"'),
            "x:9: operator 1 (avg): cid: is STRING; avg requires a number",
        ),
        (
            with_op('op = "count"', 'window = "5 s"', 'by = ["time"]'),
            "x:10: operator 1 (count): time: is the event time",
        ),
        (
            with_op('op = "count"', 'window = "5 s"', 'as = "time"'),
            "x:10: operator 1 (count): time: the output already has an attribute time",
        ),
        (
            with_op('op = "filter"', "where = \"speed > 'a'\""),
            "x:9: operator 1 (filter): speed: is INT, but 'a' is not; write a number",
        ),
        (with_op('op = "filter"', 'where = "speed >"'), "x:9: operator 1 (filter): where: column 8: "),
        (
            with_op('op = "filter"', 'attribute = "speed"', 'is = "~"', "value = 1"),
            "x:10: operator 1 (filter): is: must be one of < <= > >= = !=, not '~'",
        ),
        (
            with_op('op = "project"', 'rename = { speed = "cid" }'),
            "x:9: operator 1 (project): rename: gives two attributes the same name",
        ),
        (
            with_op('op = "project"', "defaults = { CID = 1 }"),
            "x:7: operator 1 (project): cid: is named twice",
        ),
        (
            with_op('op = "merge"', 'with = "gps"'),
            "x:9: operator 1 (merge): with: unknown stream gps; known: anpr",
        ),
        (
            with_op('op = "function"', 'function = "math:sqrt"', 'schema = "a INT"', "arguments = {b=2}"),
            "x:11: operator 1 (function): arguments: sqrt cannot be called with these arguments",
        ),
        (
            with_op('op = "function"', 'function = "nowhere:f"', 'schema = "a INT"'),
            "x:9: operator 1 (function): function: nowhere cannot be imported: ModuleNotFoundError",
        ),
        (HEAD + "[constraints]\nflow = '> 0'", "x:8: constraint: flow: is not an output attribute"),
        (HEAD + "[constraints]\ntime = '> 2010'", "x:8: constraint: time: is TIMESTAMP, but 2010.0 is not"),
        (
            HEAD + "[constraints]\nspeed = 'cid > 0'",
            "x:8: constraint: speed: the constraint speed = 'cid > 0'",
        ),
    ],
)
def test_a_problem_names_the_line_the_operator_and_the_attribute(text: str, problem: str) -> None:
    found = problems_of(text)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_the_known_settings_are_listed_once() -> None:
    (found,) = problems_of(HEAD + "rate = 3")
    assert found.endswith("known: source, time, lateness, key, partitions, topic, schema, past")


def test_every_problem_is_told_at_once() -> None:
    text = with_op('op = "count"', "[[ops]]", 'op = "filter"', 'input = "anpr"', 'where = "nothing = 1"')
    text += '[[ops]]\nop = "filter"\ninput = "anpr"\nwhere = "speed > 1"\n[constraints]\nspeed = "quick"\n'
    places = [one.split(": ")[0] for one in problems_of(text)]
    # The streams of lines 7 and 9 are also used by no operator.
    assert sorted(places) == ["x:12", "x:18", "x:7", "x:7", "x:9"]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ('window = "3 rows"', "time windows cannot follow row windows"),
        ('window = "60 s"\nslide = "30 s"', "time windows cannot follow overlapping windows"),
        ('window = "60 s"', "must be a multiple of the 60 s windows before it"),
    ],
)
def test_windows_of_time_follow_only_what_leaves_them_a_time(first: str, why: str) -> None:
    text = with_op('op = "count"', first, "[[ops]]", 'op = "max"', 'attribute = "count"', 'window = "90 s"')
    assert [why in one for one in problems_of(text)] == [True]


def test_windows_of_time_follow_shorter_ones_that_fill_them() -> None:
    text = with_op('op = "count"', 'window = "30 s"', "[[ops]]", 'op = "max"', 'attribute = "count"')
    assert problems_of(text + 'window = "90 s"\n') == []


def test_a_stream_that_no_operator_uses_is_a_problem() -> None:
    text = (
        HEAD
        + '[inputs.other]\nsource = "rate"\n[[ops]]\nop = "filter"\ninput = "anpr"\nwhere = "speed > 1"\n'
    )
    assert problems_of(text) == ["x:7: service: no operator uses the stream other; use it, or remove it"]


def test_several_inputs_need_an_operator_that_says_which_it_takes() -> None:
    text = HEAD + '[inputs.other]\nsource = "rate"\n'
    assert "has several inputs and no operator" in problems_of(text)[0]
    text += '[[ops]]\nop = "filter"\nwhere = "speed > 1"\n'
    assert "the service has several inputs (anpr, other); name the one" in problems_of(text)[0]


def test_the_scan_of_lines_sees_nested_arrays_quoted_keys_and_long_texts() -> None:
    text = '"a.b" = 1\n[[s]]\nx = """\ny = 2\n"""\n[[s.ops]]\n[s.ops.t]\nz.q = 1\n'
    text += "[[s]]\n[[s.ops]]\n[[s.ops]]\nw=1"
    assert positions_of(text) == {
        ("a.b",): 1,
        ("s", 0): 2,
        ("s", 0, "x"): 3,
        ("s", 0, "ops", 0): 6,
        ("s", 0, "ops", 0, "t"): 7,
        ("s", 0, "ops", 0, "t", "z", "q"): 8,
        ("s", 1): 9,
        ("s", 1, "ops", 0): 10,
        ("s", 1, "ops", 1): 11,
        ("s", 1, "ops", 1, "w"): 12,
    }


@given(st.text(max_size=200))
def test_any_text_is_a_definition_or_an_error_of_ours(text: str) -> None:
    assert problems_of(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=4))
def test_any_value_of_an_argument_is_taken_or_refused(value: object) -> None:
    for key in ("attribute", "by", "window", "slide", "as", "input", "output", "where", "with", "defaults"):
        service = Service("urn:x", topic="a").input("r", source="rate")
        try:
            build_plan(service.op("count", **{"window": "5 s", key: value}).definition())
        except DefinitionError as error:
            assert error.problems


def test_python_builds_the_same_as_toml() -> None:
    (toml,) = load(EXAMPLES / "genTrafficFlow.toml")
    built = (
        Service("urn:hpwsn:streams:genTrafficFlow", topic="traffic:flow")
        .input(
            "anpr",
            source="topic",
            topic="traffic:anpr",
            schema="cid STRING, vid STRING, time TIMESTAMP",
            lateness="5 s",
        )
        .op("count", by="cid", window="60 s", output="flow")
        .constraint("flow", "> 0")
        .constraint("time", "> 2010-01-01")
        .definition()
    )
    assert build_plan(built).output == build_plan(toml).output
    assert build_plan(built).conditions == build_plan(toml).conditions
    assert built.ranges == toml.ranges


def test_a_problem_of_python_names_the_line_of_its_call(tmp_path: Path) -> None:
    file = tmp_path / "service.py"
    file.write_text(
        "from hpwsn.streams.definition.builder import Service\n"
        "one = Service('urn:x', topic='a')\n"
        "one.input('r', source='rate', rate=5)\n"
        "one.op('sum', attribute='valu', window='5 s')\n"
    )
    with pytest.raises(DefinitionError) as caught:
        load(file)
    assert str(caught.value).startswith(f"{file}:4: operator 1 (sum): valu: r has no such attribute")


def test_a_service_takes_in_another_from_the_file_that_it_names() -> None:
    (one,) = load(EXAMPLES / "busiest.toml")
    assert one.inputs["flows"].text("topic") == "traffic:flow"
    assert str(build_plan(one).output.schema) == "cid STRING, flow BIGINT, time TIMESTAMP"


def _taking(uri: str, other: str) -> str:
    service = f'[[services]]\nuri = "{uri}"\ntopic = "t"\n'
    return service + f'[services.inputs.i]\nsource = "service"\nservice = "{other}"\n'


def test_services_that_take_in_each_other_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "ring.toml"
    file.write_text(_taking("urn:a", "urn:b") + _taking("urn:b", "urn:a"))
    with pytest.raises(DefinitionError, match="has itself as an input: urn:a → urn:b → urn:a"):
        load(file)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", None, "cannot be read: No such file"),
        ("a.toml", b"\xff", "cannot be read: it is not UTF-8"),
        ("a.py", b"1/0", "failed with ZeroDivisionError"),
        ("a.py", b"x = 1", "does not build a Service"),
        ("a.toml", _taking("urn:a", "urn:b").encode(), "urn:b is in none of these files"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(
    tmp_path: Path, name: str, text: bytes | None, words: str
) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text)
    with pytest.raises(DefinitionError, match=words):
        load(tmp_path / name)


def test_two_services_of_one_uri_are_refused() -> None:
    with pytest.raises(DefinitionError, match="is already the uri of the service"):
        load(EXAMPLES / "inteGPS.toml", EXAMPLES / "inteGPS.toml")


def test_the_reference_has_every_operator_argument_source_and_setting() -> None:
    page = (Path(__file__).parents[4] / "docs" / "stream-operators.md").read_text("utf-8")
    words = {*KINDS, *SOURCES}
    words |= {key for kind in KINDS.values() for key in (*kind.needed, *kind.optional)}
    words |= {key for needed, optional in SOURCES.values() for key in (*needed, *optional)}
    # In the page a word stands alone in code, or begins an example of itself.
    assert not {word for word in words if not re.search(rf"`{word}( = [^`]*)?`", page)}

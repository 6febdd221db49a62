"""The scan before a topic file is parsed: deep keys are found everywhere, and strings are no keys."""

from __future__ import annotations

import tomllib

import pytest

from hpwsn.topics.tree.toml_limits import MOST_PARTS, toml_problem
from hpwsn.topics.tree.topic_toml import DocumentError, parse_document

DEEPEST = ".".join(["a"] * MOST_PARTS)
TOO_DEEP = f"{DEEPEST}.a"


@pytest.mark.parametrize(
    "form",
    [
        "KEY = 1",
        "[KEY]",
        "[[KEY]]",
        "x = 1\nKEY = 1",
        "x = {KEY = 1}",
        "x = {y = 1, KEY = 1}",
        "x = [{KEY = 1}]",
        "x = [[], {KEY = 1}]",
        'x = ["""a"""", {KEY = 1}]',
        'x = ["""a""""", {KEY = 1}]',
        'x = ["""a\\"""b""", {KEY = 1}]',
        "x = ['''a'''', {KEY = 1}]",
        "x = ['a\\', {KEY = 1}]",
        'x = ["\\"", {KEY = 1}]',
        "x = 1 # \"\n'#'.KEY = 1",
        "x = 1 # '''\nKEY = 1 # '''",
    ],
)
def test_a_key_with_too_many_parts_is_found_at_its_line(form: str) -> None:
    text = form.replace("KEY", TOO_DEEP)
    tomllib.loads(text)
    line = text[: text.index(TOO_DEEP)].count("\n") + 1
    assert (toml_problem(text) or "").startswith(f"line {line}: a key has more than {MOST_PARTS} parts")
    if "#'" not in form:
        assert toml_problem(form.replace("KEY", DEEPEST)) is None


@pytest.mark.parametrize("spaced", ["a . ", 'a\t."b". ', "'a.a' . "])
def test_parts_with_spaces_and_quotes_are_counted_too(spaced: str) -> None:
    assert toml_problem(f"{spaced * MOST_PARTS}a = 1") is not None


@pytest.mark.parametrize(
    "text",
    [
        f'x = "{TOO_DEEP}"',
        f"x = '{TOO_DEEP}'",
        f'x = """\n{TOO_DEEP}\n"" {TOO_DEEP}"""',
        f"x = '''\n{TOO_DEEP}\n'' {TOO_DEEP}'''",
        f"# {TOO_DEEP}\nx = 1",
        f'"{TOO_DEEP}" = 1',
        f"x = [{', '.join(['1.5'] * 1000)}]",
        "[topics.A]\n" * 1000,
    ],
)
def test_dots_elsewhere_are_no_parts(text: str) -> None:
    assert toml_problem(text) is None


def test_the_parts_of_all_keys_are_limited_at_the_edge() -> None:
    text = "[a.b]\nc = {d = 1}\n"
    assert toml_problem(text, 5) is None
    assert toml_problem(text, 4) == "its keys have more than 4 parts in all; split it"


@pytest.mark.parametrize(
    "text", ['"""', "'''", '"', "'", "\\", '"""\\', '"\\', "a" * 100_000, '"""\\"' * 50_000]
)
def test_unfinished_text_is_left_to_the_parser(text: str) -> None:
    assert toml_problem(text) is None


def test_a_deep_key_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(DocumentError, match="line 1: a key has more than 66 parts; a topic has 64 at most"):
        parse_document(f"{'a.' * 10_000}a = 1")


def test_topics_are_counted_at_the_edge() -> None:
    text = '[topics.A.B]\n[[namespaces]]\nuri = "urn:x"\n[namespaces.topics.C]\n'
    assert len(parse_document(text, 3).declarations) == 3
    with pytest.raises(DocumentError, match="it has more than 2 topics"):
        parse_document(text, 2)


@pytest.mark.parametrize(
    "text",
    [
        f"a = {'1' * 4400}",
        f"[topics.A]\ndescription = 0x{'f' * 4400}",
        f"[topics.A]\nrouting = [0x{'f' * 4400}]",
        f"namespace = 0x{'f' * 4400}",
    ],
)
def test_a_number_of_thousands_of_digits_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match=r"a value cannot be read: .*digits"):
        parse_document(text)

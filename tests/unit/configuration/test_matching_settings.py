"""The choice of matching engines in a file, in the environment and on the command line."""

import tomllib
from pathlib import Path

import pytest

from hpwsn.configuration.sources import load_config
from hpwsn.errors import ConfigError, Problem
from hpwsn.settings.topic_table import TopicTable

CHOSEN = (("traffic:anpr", "cma"), ("traffic", "matching_tree"))


def problems(*arguments: object, **named: object) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        load_config(*arguments, **named)  # type: ignore[arg-type]
    return caught.value.problems


def written(folder: Path, text: str) -> Path:
    file = folder / "hpwsn.toml"
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize(
    "text",
    [
        '[matching.topics]\n"traffic:anpr" = "cma"\ntraffic = "matching_tree"\n',
        '[matching]\ntopics = { "traffic:anpr" = "cma", traffic = "Matching_Tree" }\n',
        "[matching]\ntopics = 'traffic/anpr=cma, traffic=matching_tree'\n",
    ],
)
def test_a_table_or_a_text_gives_an_engine_to_each_topic(tmp_path: Path, text: str) -> None:
    assert load_config(written(tmp_path, text)).config.matching.topics == CHOSEN


def test_the_environment_and_flags_take_the_table_as_one_text(tmp_path: Path) -> None:
    file = written(tmp_path, '[matching]\nengine = "naive"\n[matching.topics]\nother = "cma"\n')
    environ = {
        "HPWSN_MATCHING_ENGINE": "cma",
        "HPWSN_MATCHING_TOPICS": "traffic:anpr=cma,traffic=matching_tree",
    }
    config = load_config(file, environ).config.matching
    assert (config.engine, config.topics) == ("cma", CHOSEN)
    loaded = load_config(file, environ, {}, ["matching.topics=A:B=sub_order", "matching.engine=default"])
    assert loaded.config.matching.topics == (("A:B", "sub_order"),)
    assert loaded.config.matching.engine == "default"
    assert load_config(file, {}, {}, ["matching.topics="]).config.matching.topics == ()


def test_spark_is_refused_with_the_engines_that_there_are(tmp_path: Path) -> None:
    file = written(tmp_path, '[matching]\ncompiled = "never"\nengine = "spark"\n')
    (problem,) = problems(file)
    assert (problem.key, problem.source) == ("matching.engine", f"{file}:3")
    assert "'spark'" in str(problem)
    assert "must be default, matching_tree, normal_tree, cma" in str(problem)


def test_each_bad_entry_is_told_with_its_line(tmp_path: Path) -> None:
    entries = ['"A:B" = "spark"', '"two words" = "cma"', "C = 5", '"A/B" = "cma"', 'D = "cma"']
    file = written(tmp_path, "\n".join(["[matching]", "", "[matching.topics]", *entries]))
    told = problems(file)
    assert [(problem.key, problem.source.rpartition(":")[2]) for problem in told] == [
        ("matching.topics.A:B", "4"),
        ("matching.topics.two words", "5"),
        ("matching.topics.C", "6"),
    ]
    assert "'spark'" in str(told[0])
    assert "must be default, matching_tree" in str(told[0])
    assert "is not a topic" in str(told[1])
    assert "two words" in str(told[1])


def test_a_topic_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, '[matching.topics]\n"A:B" = "cma"\n"A/B" = "naive"\n')
    (problem,) = problems(file)
    assert problem.source == f"{file}:3"
    assert "names the topic A:B a second time" in str(problem)


@pytest.mark.parametrize("value", ["cma", "A=cma,B", "=cma"])
def test_a_text_without_topics_or_engines_is_refused(value: str) -> None:
    (problem,) = problems(assignments=[f"matching.topics={value}"])
    assert problem.key.startswith("matching.topics")
    assert problem.source == "flag --set"


@pytest.mark.parametrize("value", [5, ["A=cma"], True])
def test_anything_else_is_not_a_table(value: object) -> None:
    with pytest.raises(ValueError, match="a table, such as"):
        TopicTable(("cma",)).parse(value)


def test_a_table_is_written_so_that_toml_reads_it_back() -> None:
    kind = TopicTable(("cma", "matching_tree"))
    assert tomllib.loads(f"x = {kind.format(CHOSEN)}")["x"] == dict(CHOSEN)
    assert kind.format(()) == "{}"
    assert kind.parse(kind.parse(dict(CHOSEN))) == CHOSEN

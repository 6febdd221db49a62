"""`hpwsn streams run` and `history` before Spark starts: what is missing or wrong is said in one line."""

import importlib.util
from pathlib import Path

import pytest

import hpwsn
from hpwsn.commands.main import main

EXAMPLE = str(Path(hpwsn.__file__).parent / "streams" / "examples" / "genTrafficFlow.toml")


@pytest.fixture(autouse=True)
def no_java(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.parametrize("command", ["run", "history"])
def test_without_pyspark_it_says_what_to_install(command, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["streams", command, EXAMPLE]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "pip install ./client '.[spark]'" in error


@pytest.mark.parametrize("command", ["run", "history"])
def test_without_java_it_says_what_to_install(command, capsys):
    assert main(["streams", command, EXAMPLE]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "install Java 17" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", EXAMPLE, "--url", "nowhere"], "is not the address of a node"),
        (["run", EXAMPLE, "--backbone", "stomp://h:1"], "require each other"),
        (["run", EXAMPLE, "--start", "soon"], "oldest, now, or an offset"),
        (["run", EXAMPLE, "--conf", "spark.ui"], "KEY=VALUE"),
        (["run", EXAMPLE, "--archive", "e.tar.gz"], "for the workers of a cluster"),
        (["run", EXAMPLE, "--ui", "70000"], "a port from 0 to 65535"),
        (["run", EXAMPLE, "--ui", "--master", "spark://h:7077"], "would listen on all addresses"),
        (["run", EXAMPLE, "--jars", "none.jar"], "none.jar: there is no such file"),
        (["history", EXAMPLE, "--input", "anpr"], "NAME=PATH"),
        (["history", EXAMPLE, EXAMPLE.replace("genTrafficFlow", "inteGPS"), "--to", "x"], "one definition"),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments, words, capsys):
    assert main(["streams", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_archive_is_checked_before_spark_is_looked_for(capsys):
    cluster = ["--master", "spark://h:7077", "--archive", "/nowhere/e.tar.gz"]
    assert main(["streams", "run", EXAMPLE, *cluster]) == 1
    assert "/nowhere/e.tar.gz cannot be read" in capsys.readouterr().err


def test_a_definition_that_is_not_there_is_named(capsys):
    assert main(["streams", "run", "/nowhere/a.toml"]) == 1
    assert "/nowhere/a.toml: cannot be read" in capsys.readouterr().err

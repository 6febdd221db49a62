"""What `benchmarks.house` counts: calls, module changes, cycles between folders, imports and type checks."""

from __future__ import annotations

import ast
import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks.house import beside, report
from benchmarks.tools.call_trace import CallRecorder, count
from benchmarks.tools.structure import count_type_checks, find_cycles, imported_names, structure_of

FIRST = """
def tick():
    leaf()

def leaf():
    pass

def loop(jobs):
    for job in jobs:
        job()

async def wait(then):
    await pause(0)
    await pause(0)
    then()
    return [leaf() for _ in range(2)]
"""
SECOND = """
def work():
    pass
"""


@pytest.mark.parametrize(
    ("trails", "calls", "changes", "modules"),
    [
        ([], 0, 0, 0),
        ([[]], 0, 0, 0),
        ([["a"]], 1, 1, 1),
        ([["a", "a", "a"]], 3, 1, 1),
        ([["a", "b", "b", "a"]], 4, 3, 2),
        ([["a", "b"], ["b", "c"]], 4, 4, 3),
    ],
)
def test_a_change_is_a_call_in_another_module_than_the_previous_one_in_its_thread(
    trails, calls, changes, modules
):
    trace = count(trails)
    assert (trace.calls, trace.changes, trace.modules) == (calls, changes, modules)


@pytest.fixture
def package(tmp_path: Path):
    """Two modules that lie in a package, and a recorder of its calls."""
    names: dict[str, object] = {"pause": asyncio.sleep}
    for file, source in (("first.py", FIRST), ("second.py", SECOND)):
        exec(compile(source, str(tmp_path / "ours" / file), "exec"), names)
    clock = SimpleNamespace(now=0.0)
    recorder = CallRecorder([tmp_path / "ours"], clock=lambda: clock.now)
    return SimpleNamespace(recorder=recorder, clock=clock, **names)


def run_watched(package, *functions):
    before = threading.getprofile()
    package.recorder.install()
    try:
        thread = threading.Thread(target=lambda: [function() for function in functions])
        thread.start()
        thread.join()
    finally:
        threading.setprofile(before)


def test_resumptions_and_comprehensions_are_not_calls(package):
    package.recorder.begin()
    run_watched(package, lambda: asyncio.run(package.wait(package.work)))
    trace = package.recorder.end()
    assert trace.calls == 4
    assert trace.entered == {"ours.first": 2, "ours.second": 1}


def test_turns_of_an_idle_process_are_left_out(package):
    package.recorder.begin()
    run_watched(package, package.tick)
    package.recorder.learn()
    package.recorder.begin()
    run_watched(package, package.tick, package.work, package.tick, package.leaf)
    assert package.recorder.end().entered == {"ours.second": 1, "ours.first": 1}


def test_a_thread_that_loops_has_a_turn_for_each_job_it_waited_for(package):
    def pause():
        package.clock.now += 1

    def jobs(*given):
        return lambda: package.loop([part for job in given for part in (pause, job)])

    package.recorder.begin()
    run_watched(package, jobs(package.tick))
    package.recorder.learn()
    package.recorder.begin()
    run_watched(package, jobs(package.work, package.tick, package.work))
    assert package.recorder.end().entered == {"ours.second": 1}


def test_nothing_is_noted_before_the_beginning_and_after_the_end(package):
    run_watched(package, package.work)
    package.recorder.begin()
    assert package.recorder.end().calls == 0
    run_watched(package, package.work)
    assert package.recorder.calls == 0


@pytest.mark.parametrize(
    ("graph", "cycles"),
    [
        ({}, ()),
        ({"a": {"b"}, "b": {"c"}, "c": set()}, ()),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, (("a", "b"),)),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}, (("a", "b", "c"), ("d", "e"))),
        ({"a": {"elsewhere"}}, ()),
    ],
)
def test_cycles_are_the_strongly_connected_components_of_several_folders(graph, cycles):
    assert find_cycles(graph) == cycles


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import os.path as p", ["os.path"]),
        ("from . import tree", ["hpwsn.topics.tree"]),
        ("from ..door import soap", ["hpwsn.door.soap"]),
        ("def f():\n    import asyncio", ["asyncio"]),
        ("if TYPE_CHECKING:\n    import asyncio\nelse:\n    import json", ["json"]),
    ],
)
def test_imports_are_those_at_run_time_in_every_form(source, names):
    assert list(imported_names(ast.parse(source), "hpwsn.topics")) == names


@pytest.mark.parametrize(
    ("source", "checks"),
    [
        ("isinstance(x, Run)", 1),
        ("isinstance(x, (Batch, list)) and isinstance(x, notification.Run | None)", 2),
        ("isinstance(Run, type)", 0),
        ("isinstance(x, Runner)", 0),
    ],
)
def test_type_checks_are_calls_of_isinstance_with_a_notification_type(source, checks):
    assert count_type_checks(ast.parse(source)) == checks


def test_the_structure_of_a_checkout_is_counted_from_its_files(tmp_path: Path):
    files = {
        "hpwsn/__init__.py": '"""Nothing else."""\n',
        "hpwsn/node/__init__.py": "from hpwsn.door.soap import door\n",
        "hpwsn/door/__init__.py": "",
        "hpwsn/door/soap.py": "# A reason.\n\ndef door():\n    from hpwsn.node import Node\n",
        "client/hpwsn_client/soap.py": "import hpwsn_other\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    found = structure_of(tmp_path)
    assert list(found.numbers.values()) == [3, 3, 0, 2, 1, 3, 7, 5, 0]
    assert found.cycles == (("hpwsn/door", "hpwsn/node"),)
    assert found.same_names == {"soap": ("hpwsn/door/soap.py", "client/hpwsn_client/soap.py")}


def test_a_number_stands_beside_the_earlier_one_with_the_ratio():
    assert [beside(50, None), beside(50, 100), beside(1, 0)] == ["50", "100 → 50 (0.50)", "0 → 1 (–)"]


def test_a_report_compares_structure_and_paths():
    def result(number: int):
        structure = {"numbers": {"modules": number}, "largest": {}, "cycles": [], "same_names": {}}
        figures = {"calls": number, "module changes": number, "modules": number}
        return {"structure": structure, "paths": {"restart": figures}}

    text = "\n".join(report(result(2), result(4)))
    assert text.count("4 → 2 (0.50)") == 4

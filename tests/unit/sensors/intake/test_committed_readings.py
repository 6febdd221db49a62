"""Which readings a commit has, whichever way they came."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.notification import END, INTERNAL, Run
from hpwsn.sensors.intake.committed_readings import CommittedReadings, Numbered
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.readings.reading_run import SensorRuns, numbered_readings
from hpwsn_client.wsn.topics.topic_expressions import Topic

TOPIC = Topic.parse("sensors:weather:s1")
RUNS = SensorRuns("s1", "weather", TOPIC)


def reading(time: int) -> Reading:
    return Reading("s1", "weather", time, {"t": 1.5})


def taken(first: int, runs: Sequence[Run]) -> tuple[int, list[Numbered]]:
    told: list[tuple[int, list[Numbered]]] = []
    committed = CommittedReadings()
    committed.taken.add(lambda after, found: told.append((after, list(found))))
    committed.committed(first, runs)
    assert len(told) == 1
    return told[0]


def plain(run: Run) -> Run:
    return Run(run.topic, run.before, run.payloads, run.size)


def hidden(run: Run) -> Run:
    run.target = INTERNAL
    return run


def test_readings_have_their_offsets() -> None:
    other = Run(Topic.parse("hall"), b"", b"<x/>" + END + b"<x/>" + END, 2)
    runs = [
        RUNS.run((reading(1),)),
        other,
        RUNS.run((reading(2), reading(3))),
        plain(RUNS.run((reading(4),))),
    ]
    assert taken(5, runs) == (11, [(5, reading(1)), (8, reading(2)), (9, reading(3)), (10, reading(4))])


def test_a_commit_without_readings_is_told_too() -> None:
    assert taken(5, [Run(None, b"", b"<x/>" + END, 1)]) == (6, [])


def test_what_is_on_an_internal_topic_is_passed_over() -> None:
    assert taken(1, [hidden(RUNS.run((reading(1),))), RUNS.run((reading(2),))]) == (3, [(2, reading(2))])


def test_an_event_that_is_not_a_reading_is_passed_over() -> None:
    run = RUNS.run((reading(1),))
    run.extend([Run(TOPIC, run.before, b"<x/>" + END, 1)])
    assert taken(1, [run]) == (3, [(1, reading(1))])


@given(
    st.lists(
        st.one_of(
            st.just(lambda: RUNS.run((reading(1),))),
            st.just(lambda: RUNS.run((reading(1), reading(2)))),
            st.just(lambda: plain(RUNS.run((reading(3), reading(4))))),
            st.just(lambda: hidden(RUNS.run((reading(5),)))),
            st.just(lambda: Run(Topic.parse("hall"), b"", b"<x/>" + END, 1)),
            st.just(lambda: Run(TOPIC, b"", b"<x/>" + END, 1)),
        ).map(lambda make: make()),
        max_size=6,
    )
)
def test_the_log_gives_the_same_readings(runs: list[Run]) -> None:
    assert taken(9, runs)[1] == list(
        numbered_readings(9, [hidden(plain(each)) if each.target else plain(each) for each in runs])
    )

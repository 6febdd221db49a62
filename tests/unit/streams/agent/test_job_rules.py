"""When the agent starts a job again, when it gives up, and which state it reports."""

import pytest

from hpwsn.streams.agent.job_rules import LONGEST_PAUSE, JobState, Observation, RestartPolicy, job_state

POLICY = RestartPolicy(restarts=3, within=100.0)


def test_pauses_double_and_the_crash_after_the_last_restart_is_final() -> None:
    crashes = [10.0, 11.0, 13.0, 17.0]
    pauses = [POLICY.pause(crashes[:number], crashes[number - 1]) for number in (1, 2, 3, 4)]
    assert pauses == [1.0, 2.0, 4.0, None]


def test_a_pause_has_a_limit() -> None:
    assert RestartPolicy(1000, 100.0).pause([50.0] * 500, 50.0) == LONGEST_PAUSE


def test_crashes_are_forgotten_after_the_window() -> None:
    crashes = [0.0, 1.0, 2.0, 99.0]
    assert POLICY.pause(crashes, 99.0) is None
    # At 100 the crash at 0 is exactly as old as the window.
    assert POLICY.recent(crashes, 100.0) == [1.0, 2.0, 99.0]
    assert POLICY.pause(crashes, 100.0) == 4.0


def test_without_restarts_the_first_crash_is_final() -> None:
    assert RestartPolicy(0, 100.0).pause([5.0], 5.0) is None


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (Observation(alive=True, launched=10, heard=None, crashes=0), JobState.STARTING),
        (Observation(alive=False, launched=0, heard=None, crashes=0), JobState.STARTING),
        (Observation(alive=True, launched=10, heard=9, crashes=0), JobState.STARTING),
        (Observation(alive=True, launched=10, heard=10, crashes=0), JobState.RUNNING),
        (Observation(alive=True, launched=10, heard=10, crashes=2), JobState.RUNNING),
        (Observation(alive=True, launched=2, heard=5, crashes=0), JobState.SILENT),
        (Observation(alive=True, launched=2, heard=5.001, crashes=0), JobState.RUNNING),
        (Observation(alive=True, launched=10, heard=9, crashes=1), JobState.RESTARTING),
        (Observation(alive=False, launched=10, heard=19, crashes=1), JobState.RESTARTING),
        (Observation(alive=False, launched=10, heard=19, crashes=4, failed=True), JobState.FAILED),
        (Observation(alive=True, launched=10, heard=19, crashes=0, stopping=True), JobState.STOPPING),
        (Observation(False, 10, 19, 4, failed=True, stopping=True), JobState.STOPPING),
    ],
)
def test_the_state_of_a_job_follows_from_its_process_and_its_heartbeats(
    seen: Observation, state: JobState
) -> None:
    assert job_state(seen, now=20.0, silent_after=15.0) is state

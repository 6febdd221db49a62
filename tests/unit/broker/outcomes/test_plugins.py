"""Plug-ins for delivery outcomes: a thread of their own, a bounded queue, failures that harm nobody."""

import threading

from hpwsn.broker.outcomes.outcome import DeliveryOutcome, Result
from hpwsn.broker.outcomes.plugins import OutcomePlugins


def _outcome(number: int) -> DeliveryOutcome:
    return DeliveryOutcome(Result.DELIVERED, "s", "http://c/", [number], float(number))


def test_every_plug_in_gets_every_outcome_in_order() -> None:
    first: list[int] = []
    second: list[int] = []
    plugins = OutcomePlugins(
        {"a": lambda o: first.append(o.offsets[0]), "b": lambda o: second.append(o.offsets[0])}, 100
    )
    plugins.start()
    for number in range(50):
        plugins.note(_outcome(number))
    plugins.close()
    assert first == second == list(range(50))
    assert plugins.figures() == {"plugins": 2, "reported": 50, "skipped": 0, "failures": 0, "queued": 0}


def test_a_plug_in_that_raises_gets_the_next_outcome() -> None:
    seen: list[int] = []

    def fail_first(outcome: DeliveryOutcome) -> None:
        seen.append(outcome.offsets[0])
        if len(seen) == 1:
            raise RuntimeError("the plug-in's own error")

    plugins = OutcomePlugins({"a": fail_first}, 100)
    plugins.start()
    plugins.note(_outcome(1))
    plugins.note(_outcome(2))
    plugins.close()
    assert (seen, plugins.failures, plugins.reported) == ([1, 2], 1, 2)


def test_outcomes_beyond_the_limit_are_skipped_and_counted() -> None:
    entered, leave = threading.Event(), threading.Event()
    seen: list[int] = []

    def hold(outcome: DeliveryOutcome) -> None:
        seen.append(outcome.offsets[0])
        entered.set()
        leave.wait()

    plugins = OutcomePlugins({"slow": hold}, 3)
    plugins.start()
    plugins.note(_outcome(0))
    assert entered.wait(60)
    for number in range(1, 5):
        plugins.note(_outcome(number))
    assert (plugins.skipped, plugins.figures()["queued"]) == (1, 3)
    leave.set()
    plugins.close()
    assert seen == [0, 1, 2, 3]


def test_only_an_attempt_that_is_tried_again_is_not_final() -> None:
    assert [result for result in Result if not result.is_final] == [Result.FAILED]

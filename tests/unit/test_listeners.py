"""Listeners are called in order, and one that fails keeps no other from being called."""

import pytest

from hpwsn.listeners import Listeners


def test_a_listener_that_fails_is_logged_and_the_rest_are_called(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def fail(word: str) -> None:
        told.append(f"{word} failed")
        raise RuntimeError("no")

    event: Listeners[str] = Listeners("a test")
    event.add(fail)
    event.add(told.append)
    event("one")
    assert told == ["one failed", "one"]
    assert "a listener to a test failed" in caplog.text
    event.remove(fail)
    event("two")
    assert told == ["one failed", "one", "two"]

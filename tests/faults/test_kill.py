"""kill -9 again and again under load: what was answered 202 arrives, in order, and is stored once.

A few rounds, so that every change can wait for them; `scripts/kill-test --rounds 50` makes the same checks.
"""

from pathlib import Path

from tests.faults.kill import KillTest


async def test_12_kills_under_load_lose_nothing_that_was_accepted(tmp_path: Path) -> None:
    test = KillTest(tmp_path, rounds=12)
    report = await test.run()
    print(f"\n{report}")
    assert sum(report.rounds.values()) == 12
    assert min(report.rounds.values()) > 0
    assert all(verdict.good and verdict.accepted for verdict in report.verdicts), str(report)
    assert report.refused == 0
    assert "Traceback" not in test.node.log()


async def test_what_is_sent_again_under_its_id_after_a_kill_is_stored_once(tmp_path: Path) -> None:
    """A consumer may see it twice, as a redelivery; in the journal it has one offset."""
    test = KillTest(tmp_path, rounds=8, seed=2, ids=True)
    report = await test.run()
    print(f"\n{report}")
    assert all(verdict.good and verdict.accepted for verdict in report.verdicts), str(report)
    assert (report.unknown, report.repeated > 0) == (0, True)
    assert report.stored_twice == 0
    assert report.stored == len(set(test.accepted()))

"""Alerts appear after their time, keep their beginning, and do not flap."""

from hpwsn.monitoring.alerts import Alerts, Finding


def finding(name: str = "A", after: float = 0.0, text: str = "text", severity: str = "warning") -> Finding:
    return Finding(name, severity, text, "remedy", "health", after)  # type: ignore[arg-type]


def names(alerts: Alerts) -> list[str]:
    return [each.name for each, _ in alerts]


def test_a_finding_is_an_alert_once_it_has_held_long_enough() -> None:
    alerts = Alerts(keep=60)
    assert not alerts.update([finding(after=30)], now=100, wall=5000)
    assert not alerts.update([finding(after=30)], now=129.9, wall=5029.9)
    assert alerts.update([finding(after=30)], now=130, wall=5030)
    assert not alerts.update([finding(after=30)], now=131, wall=5031)
    assert alerts.described() == [
        {
            "name": "A",
            "severity": "warning",
            "since": "1970-01-01T01:23:20+00:00",
            "text": "text",
            "remedy": "remedy",
            "view": "health",
        }
    ]


def test_a_finding_that_goes_before_its_time_begins_anew() -> None:
    alerts = Alerts(keep=60)
    alerts.update([finding(after=30)], now=100, wall=0)
    alerts.update([], now=110, wall=10)
    alerts.update([finding(after=30)], now=120, wall=20)
    assert not alerts.update([finding(after=30)], now=149, wall=49)
    assert alerts.update([finding(after=30)], now=150, wall=50)
    assert [since for _, since in alerts] == [20]


def test_an_alert_that_comes_and_goes_is_one_alert_until_it_is_gone_for_long() -> None:
    alerts = Alerts(keep=60)
    alerts.update([finding()], now=0, wall=1000)
    assert not alerts.update([], now=59.9, wall=1060)
    assert not alerts.update([finding()], now=60, wall=1060)
    assert [since for _, since in alerts] == [1000]
    assert not alerts.update([], now=119.9, wall=1120)
    assert alerts.update([], now=120, wall=1120)
    assert names(alerts) == []


def test_a_changed_text_is_a_change_and_keeps_the_beginning() -> None:
    alerts = Alerts(keep=0)
    alerts.update([finding(text="3 wait")], now=0, wall=7)
    assert alerts.update([finding(text="4 wait")], now=1, wall=8)
    assert [(each.text, since) for each, since in alerts] == [("4 wait", 7)]


def test_the_most_severe_and_then_the_oldest_is_first() -> None:
    alerts = Alerts(keep=9)
    alerts.update([finding("info", severity="info"), finding("late")], now=0, wall=0)
    later = [finding("new"), finding("bad", severity="critical"), finding("late")]
    alerts.update([finding("info", severity="info"), *later], now=1, wall=1)
    assert names(alerts) == ["bad", "late", "new", "info"]
    assert len(alerts) == 4


def test_listeners_hear_of_the_beginning_and_the_end_once() -> None:
    alerts, heard = Alerts(keep=2), list[str]()
    alerts.raised.add(lambda each: heard.append(f"+{each.name}"))
    alerts.cleared.add(lambda each: heard.append(f"-{each.name}"))
    for now in range(5):
        alerts.update([finding()] if now < 2 else [], now=now, wall=now)
    assert heard == ["+A", "-A"]

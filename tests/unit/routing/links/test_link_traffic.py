"""Counters of links become rates."""

from hpwsn.routing.links.link_traffic import SHORTEST_SPAN, LinkRates, LinkReport, LinkTraffic


def udp(messages: int, sent: int, unconfirmed: int = 0) -> LinkTraffic:
    return LinkTraffic("udp", True, messages, sent, unconfirmed)


class TestRates:
    def test_a_rate_is_the_mean_since_the_reading_before(self) -> None:
        rates = LinkRates()
        assert rates.read([("b", udp(10, 1000))], 100.0) == (LinkReport("b", "udp", "up", 0.0, 0.0, 0),)
        assert rates.read([("b", udp(30, 1500, 7))], 104.0) == (LinkReport("b", "udp", "up", 5.0, 125.0, 7),)

    def test_a_new_link_and_one_that_was_made_anew_count_from_nothing(self) -> None:
        rates = LinkRates()
        rates.read([("b", udp(100, 1000))], 0.0)
        found = rates.read([("b", udp(4, 40)), ("c", LinkTraffic("tcp", False, 2, 20, 20))], 2.0)
        assert [(link.to, link.rate, link.bytes, link.state) for link in found] == [
            ("b", 2.0, 20.0, "up"),
            ("c", 1.0, 10.0, "down"),
        ]

    def test_two_who_ask_at_once_get_the_same_reading(self) -> None:
        rates = LinkRates()
        rates.read([], 0.0)
        first = rates.read([("b", udp(2, 20))], 2.0)
        assert rates.read([("b", udp(9, 90))], 2.0 + SHORTEST_SPAN / 2) is first
        (later,) = rates.read([("b", udp(9, 90))], 2.0 + SHORTEST_SPAN)
        assert later.rate == 7.0

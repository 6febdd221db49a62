"""What a node reports with a heartbeat: it fits, and it is read as it was sent."""

import json

from hpwsn.routing.links.link_traffic import LinkReport
from hpwsn.routing.membership.node_report import (
    LARGEST,
    MAX_BYTES,
    MAX_FIGURES,
    MAX_LINKS,
    NodeReport,
    parse_report,
)
from hpwsn.routing.topology.topology import MAX_NAME


class TestReport:
    def test_it_has_the_stuck_links_and_then_the_busiest(self) -> None:
        busy = [LinkReport(f"n{n}", "udp", "up", n, n, 0) for n in range(MAX_LINKS)]
        stuck = LinkReport("stuck", "tcp", "down", 0.0, 0.0, 1)
        told = NodeReport({}, (*busy, stuck)).encode()["links"]
        assert len(told) == MAX_LINKS
        assert [link["to"] for link in told[:2]] == ["stuck", f"n{MAX_LINKS - 1}"]
        assert "n0" not in [link["to"] for link in told]

    def test_what_a_node_sends_is_read_as_it_was(self) -> None:
        report = NodeReport({"cpu": 0.5, "accept_p50": None}, (LinkReport("b", "tcp", "up", 1.5, 2.0, 3),))
        assert parse_report(json.dumps(report.encode()).encode(), ("cpu", "accept_p50")) == report

    def test_an_odd_figure_does_not_cost_the_membership(self) -> None:
        figures = {"nan": float("nan"), "large": 2 * LARGEST, "fine": LARGEST}
        sent = NodeReport(figures).encode()
        assert sent["figures"] == {"nan": None, "large": None, "fine": LARGEST}
        assert parse_report(json.dumps(sent).encode(), figures) is not None

    def test_the_longest_fits(self) -> None:
        link = LinkReport('"' * MAX_NAME, "udp", "down", 123456789.123, 123456789012.123, 123456789012)
        figures = {f"a_long_figure_{number}": 0.123456789 for number in range(MAX_FIGURES)}
        sent = NodeReport({**figures, "one more": 1.0}, (link,) * MAX_LINKS).encode()
        body = json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode()
        assert len(body) <= MAX_BYTES
        parsed = parse_report(body, figures)
        assert parsed is not None and len(parsed.figures) == MAX_FIGURES

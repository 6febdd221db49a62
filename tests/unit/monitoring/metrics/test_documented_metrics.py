"""docs/metrics.md has every metric with its type, labels and meaning."""

import re
from pathlib import Path

from prometheus_client.core import Metric

from hpwsn.histogram import Timings
from hpwsn.monitoring.metrics.admin_metrics import ROWS as ADMIN_ROWS
from hpwsn.monitoring.metrics.broker_metrics import timing_families
from hpwsn.monitoring.metrics.node_metrics import ROWS
from hpwsn.monitoring.metrics.service_metrics import COUNTERS, GAUGES, RUNNING

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


def line(kind: str, name: str, labels: tuple[str, ...], text: str) -> str:
    return f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {text} |"


def expected() -> list[str]:
    timings: list[Metric] = list(timing_families(Timings()))
    services = {"gauge": [RUNNING, *GAUGES.values()], "counter": list(COUNTERS.values())}
    return [
        *(line(row.kind, row.name, row.labels, row.help) for row in (*ROWS, *ADMIN_ROWS)),
        *(line(family.type, family.name, (), family.documentation) for family in timings),
        *(line(kind, *one[:1], ("service",), one[1]) for kind, some in services.items() for one in some),
    ]


def test_every_metric_is_in_the_documents_as_it_is() -> None:
    lines = PAGE.read_text().splitlines()
    assert [each for each in expected() if each not in lines] == []


def test_the_documents_have_no_metric_that_does_not_exist() -> None:
    known = {re.split("[`]", each)[1] for each in expected()}
    row = re.compile(r"^\| `(hpwsn_\w+)` \| (?:counter|gauge|histogram) \|", re.MULTILINE)
    documented = set(row.findall(PAGE.read_text()))
    made_by_code = {name for name in documented if name.endswith(("_info", "_state"))}
    assert documented - made_by_code == known

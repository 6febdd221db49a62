"""Apache CXF's own client classes, unchanged, against a node.

tests/interop/cxf/client plays a scenario for each name that it is told. NotificationBroker, Consumer,
PullPoint, CreatePullPoint, Publisher, Registration and Subscription of org.apache.cxf.wsn.client do all else.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cxf import CxfProgram
from tests.harness import NodeProcess

SCENARIOS = (
    "subscribe-and-notify",
    "notifications-arrive-in-order",
    "two-subscribers-get-the-same",
    "another-topic-stays-away",
    "topic-of-several-names",
    "subscribe-without-a-topic",
    "content-filter",
    "use-raw",
    "renew-a-live-subscription",
    "renew-within-the-grace",
    "pause-and-resume",
    "unsubscribe-ends-delivery",
    "unsubscribe-twice-is-unknown",
    "subscription-by-its-address",
    "get-current-message",
    "soap-1.2",
    "payload-of-a-custom-type",
    "payload-as-a-tree",
    "large-payload",
    "pull-point",
    "pull-point-with-a-queue-name",
    "pull-point-in-portions",
    "pull-point-that-is-empty",
    "pull-point-by-its-address",
    "pull-point-destroyed-is-unknown",
    "registered-publisher",
    "publisher-without-a-reference",
    "publisher-of-a-custom-type",
    "publisher-on-demand",
    "publisher-on-demand-of-two-topics",
    "publisher-on-demand-that-came-late",
    "registration-destroyed-ends-the-demand",
    "registration-destroyed-is-unknown",
    "registration-by-its-address",
    "fault-demand-without-a-reference",
    "fault-unknown-topic-dialect",
    "fault-invalid-topic",
    "fault-topic-not-supported",
    "fault-invalid-filter",
    "fault-invalid-content-filter",
    "fault-invalid-producer-properties",
    "fault-initial-time-in-the-past",
    "fault-renew-into-the-past",
    "fault-unrecognized-policy",
    "fault-consumer-nowhere",
    "fault-no-current-message",
    "fault-several-topics",
    "resource-property",
    "fault-unknown-resource-property",
)
TOPICS = "[topics.fixed]\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CxfProgram]:
    """CXF's clients beside a node with open topics and a node with a topic file."""
    folder: Path = tmp_path_factory.mktemp("cxf")
    topics = folder / "topics.toml"
    topics.write_text(TOPICS)
    with (
        NodeProcess(folder / "open", "--set", "registrations.linger=0") as node,
        NodeProcess(folder / "fixed", "--topics", str(topics)) as fixed,
        CxfProgram("client", "interop.Scenarios", node.url, fixed.url, log=folder / "cxf.log") as running,
    ):
        assert tuple(running.hear("scenarios").split()) == SCENARIOS
        yield running


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_cxf_client_scenario(program: CxfProgram, scenario: str) -> None:
    program.tell(scenario)
    assert program.hear(scenario) == "passed", program.log()

"""The npm `soap` client, unchanged, subscribes, publishes and pulls, from nothing but the node's WSDL.

`scripts/test --interop` installs it, and CI always. tests/interop/node/client.js does all the talking, once
for each version of SOAP, with its consumer on the library's own server; the tests judge what it was told.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.harness import NodeProcess
from tests.patience import PATIENCE

CLIENT = Path(__file__).with_name("node") / "client.js"
CONCRETE = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"


@pytest.fixture(scope="module", params=["1.1", "1.2"])
def version(request: pytest.FixtureRequest) -> str:
    """The version of SOAP that the client speaks."""
    return str(request.param)


@pytest.fixture(scope="module")
def told(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the client was told, by operation."""
    if not (CLIENT.parent / "node_modules" / "installed").is_file() or shutil.which("node") is None:
        pytest.skip("needs the npm soap client: apt-get install nodejs npm, then scripts/test --interop")
    with NodeProcess(tmp_path_factory.mktemp("npm") / "data") as node:
        command = ["node", str(CLIENT), node.url, version]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert ended.returncode == 0, ended.stderr
        yield json.loads(ended.stdout)


def numbers(messages: Any) -> list[int]:
    """The readings of messages; the library gives one alone as an object, several as a list."""
    several = messages if isinstance(messages, list) else [messages]
    return [int(message["Message"]["reading"]["n"]) for message in several]


def lasts(times: dict[str, str], end: str = "TerminationTime") -> timedelta:
    return datetime.fromisoformat(times[end]) - datetime.fromisoformat(times["CurrentTime"])


def detail(refusal: dict[str, Any]) -> dict[str, Any]:
    """The detail of a fault, whose name the versions spell differently."""
    fault = refusal["fault"]
    found: dict[str, Any] = fault.get("detail") or fault["Detail"]
    return found


def test_a_pushed_notification_is_read_by_the_library_s_own_server(told: dict[str, Any]) -> None:
    assert numbers(told["heard"]) == [1, 2, 3], "what the filter refuses stays away, a pause keeps the order"
    reference = told["subscribe"]["SubscriptionReference"]
    for message in told["heard"]:
        assert message["SubscriptionReference"] == reference
        assert message["Topic"] == {"attributes": {"Dialect": CONCRETE}, "$value": "npm/hall"}


def test_a_subscription_is_renewed_paused_resumed_and_ended(told: dict[str, Any]) -> None:
    assert timedelta(minutes=59) < lasts(told["subscribe"]) <= timedelta(hours=1)
    assert timedelta(minutes=119) < lasts(told["renew"]) <= timedelta(hours=2)
    assert told["heardInPause"] == 2
    assert [told[name] for name in ("notify", "pause", "resume", "unsubscribe")] == [None] * 4
    assert detail(told["unknown"]).keys() == {"ResourceUnknownFault"}


def test_a_pull_point_gives_what_it_holds_in_order(told: dict[str, Any]) -> None:
    assert told["createPullPoint"]["PullPoint"]["Address"]
    first, second = (answer["NotificationMessage"] for answer in told["getMessages"])
    assert numbers(first) + numbers(second) == [7, 8, 9]
    assert told["getCurrentMessage"] == {"reading": {"n": "9"}}
    assert told["destroyPullPoint"] is None


def test_a_subscription_is_a_resource_with_properties_and_a_lifetime(told: dict[str, Any]) -> None:
    assert told["setTerminationTime"]["NewTerminationTime"] == "2999-01-01T00:00:00.000Z"
    assert datetime.fromisoformat(told["getResourceProperty"]["CreationTime"]).tzinfo is not None
    assert told["destroy"] is None


def test_faults_are_decoded_with_their_fields(told: dict[str, Any], version: str) -> None:
    assert [next(iter(detail(refusal))) for refusal in told["faults"]] == [
        "TopicExpressionDialectUnknownFault",
        "InvalidFilterFault",
        "UnacceptableInitialTerminationTimeFault",
        "NoCurrentMessageOnTopicFault",
        "MultipleTopicsSpecifiedFault",
        "ResourceUnknownFault",
    ]
    for refusal in [told["unknown"], *told["faults"]]:
        (found,) = detail(refusal).values()
        assert found["Timestamp"].endswith("Z")
        assert found["Description"]["$value"] in refusal["message"], "a person reads why"
        assert refusal["status"] == {"1.1": 500, "1.2": 400}[version]
    assert detail(told["faults"][1])["InvalidFilterFault"]["UnknownFilter"].endswith(":odd")
    assert detail(told["faults"][2])["UnacceptableInitialTerminationTimeFault"]["MinimumTime"]

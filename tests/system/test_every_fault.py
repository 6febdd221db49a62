"""Every fault of the standard, raised by a real node in the case that the standard gives for it, in both
versions of SOAP: its element, its time, its words, its own fields, its HTTP status, and valid by the schemas.

A case is how to get there on one of six nodes: an ordinary one; one with fixed topics; one with small limits;
one with many topics; one that pushes raw messages only; and one whose journal another process keeps locked,
so that nothing can change.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from hpwsn_client.wsn.soap.faults import WsnFault
from tests import raw_soap
from tests.contract_schema import contract_schema
from tests.harness import NodeProcess
from tests.raw_soap import NAMES, Reply, call, notify, subscribe

RP, RL = "http://docs.oasis-open.org/wsrf/rp-2", "http://docs.oasis-open.org/wsrf/rl-2"
SCOPE = f'xmlns:p="{RP}" xmlns:l="{RL}"'
NOBODY = "http://127.0.0.1:9/"
ADDRESS = "w:SubscriptionReference/a:Address"
SENDER, RECEIVER, UNAVAILABLE = {"1.1": 500, "1.2": 400}, {"1.1": 500, "1.2": 500}, {"1.1": 503, "1.2": 503}
WORDS = {"1.1": ("Client", "Server"), "1.2": ("Sender", "Receiver")}
TOPICS = "[topics.known]\n[topics.known.one]\n[topics.known.two]\n"
HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
db.execute("ROLLBACK")
"""


class Nodes:
    """The nodes of the cases, and what is there to be worked on before the journal is locked."""

    def __init__(self, folder: Path) -> None:
        topics = folder / "topics.toml"
        topics.write_text(TOPICS)
        limits = ("subscriptions.limit=1", "subscriptions.max_lifetime=1h", "pull_points.limit=1")
        settings = [part for limit in limits for part in ("--set", limit)]
        self.plain = NodeProcess(folder / "plain")
        self.fixed = NodeProcess(folder / "fixed", "--topics", str(topics))
        self.small = NodeProcess(folder / "small", *settings)
        self.many = NodeProcess(folder / "many")
        self.raw = NodeProcess(folder / "raw", "--set", "delivery.raw_only=true")
        self.locked = NodeProcess(folder / "locked")
        self.subscription = self.point = self.batch = ""

    async def prepare(self) -> None:
        """Make what requests are about to be sent to."""
        if not self.subscription:
            self.point = (await call(self.locked.url, "<w:CreatePullPoint/>")).text("w:PullPoint/a:Address")
            self.subscription = (await call(self.locked.url, subscribe(self.point, "A"))).text(ADDRESS)
            await call(self.locked.url, notify("A", "<n/>"))
            pulled = await call(self.point, confirm(""))
            self.batch = pulled.content.findtext("{urn:hpwsn:1}Batch") or ""
            await call(self.small.url, subscribe(NOBODY, "A"))
            await call(self.small.url, "<w:CreatePullPoint/>")
            for start in range(0, 2400, 800):
                messages = (notify(f"T:n{start + n}", "<n/>") for n in range(800))
                inside = "".join(each[len("<w:Notify>") : -len("</w:Notify>")] for each in messages)
                assert (await call(self.many.url, f"<w:Notify>{inside}</w:Notify>")).status == 202

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Another process with a transaction on the journal."""
        command = (sys.executable, "-c", HOLDER, str(self.locked.data / "journal.db"))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"locked\n"
            try:
                yield
            finally:
                holder.communicate()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    made = Nodes(tmp_path_factory.mktemp("faults"))
    with made.plain, made.fixed, made.small, made.many, made.raw, made.locked:
        yield made


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    return contract_schema(tmp_path_factory.mktemp("contract"))


@dataclass(frozen=True)
class Case:
    """A request that is at fault: the fault, where to send what, the status, and the fault's own fields."""

    fault: str
    url: Callable[[Nodes], str]
    body: str | Callable[[Nodes], str]
    status: dict[str, int]
    own: dict[str, str]
    name: str


def at_broker(nodes: Nodes) -> str:
    return nodes.plain.url


def at_fixed(nodes: Nodes) -> str:
    return nodes.fixed.url


def at_small(nodes: Nodes) -> str:
    return nodes.small.url


def at_no_subscription(nodes: Nodes) -> str:
    return f"{nodes.plain.base}/wsn/subscriptions/none"


def at_no_pull_point(nodes: Nodes) -> str:
    return f"{nodes.plain.base}/wsn/pullpoints/none"


def renew(text: str) -> str:
    return f"<w:Renew><w:TerminationTime>{text}</w:TerminationTime></w:Renew>"


def ending(text: str) -> str:
    return f"<w:InitialTerminationTime>{text}</w:InitialTerminationTime>"


def policy(inside: str) -> str:
    return f"<w:SubscriptionPolicy>{inside}</w:SubscriptionPolicy>"


def current(topic: str, dialect: str = raw_soap.SIMPLE) -> str:
    return f'<w:GetCurrentMessage><w:Topic Dialect="{dialect}">{topic}</w:Topic></w:GetCurrentMessage>'


def confirm(batch: str) -> str:
    return f'<w:GetMessages><hp:Confirm xmlns:hp="urn:hpwsn:1">{batch}</hp:Confirm></w:GetMessages>'


def query(expression: str, dialect: str = raw_soap.XPATH) -> str:
    inside = f'<p:QueryExpression Dialect="{dialect}">{expression}</p:QueryExpression>'
    return f"<p:QueryResourceProperties {SCOPE}>{inside}</p:QueryResourceProperties>"


def get(name: str) -> str:
    return f"<p:GetResourceProperty {SCOPE}>{name}</p:GetResourceProperty>"


def end_in(duration: str) -> str:
    inside = f"<l:RequestedLifetimeDuration>{duration}</l:RequestedLifetimeDuration>"
    return f"<l:SetTerminationTime {SCOPE}>{inside}</l:SetTerminationTime>"


CASES: list[Case] = []


def case(
    fault: str,
    url: Callable[[Nodes], str],
    body: str | Callable[[Nodes], str],
    status: dict[str, int] = SENDER,
    **own: str,
) -> None:
    """Add a case to the table."""
    CASES.append(Case(fault, url, body, status, own, f"{fault}-{sum(c.fault == fault for c in CASES)}"))


CONTENT = '<w:MessageContent Dialect="{}">{}</w:MessageContent>'
PRODUCER = '<w:ProducerProperties Dialect="{}">{}</w:ProducerProperties>'
DELIVERY = '<x:Delivery xmlns:x="urn:hpwsn:1" {}/>'

# WS-Resource: nobody, or nobody any more, at the address that every manager's operation is sent to.
for request in ("<w:Unsubscribe/>", "<w:PauseSubscription/>", "<w:ResumeSubscription/>", renew("PT1H")):
    case("ResourceUnknownFault", at_no_subscription, request)
for request in (f"<l:Destroy {SCOPE}/>", end_in("PT1H"), get("w:Filter"), query("//w:Filter")):
    case("ResourceUnknownFault", at_no_subscription, request)
for request in ("<w:GetMessages/>", "<w:DestroyPullPoint/>", notify(None, "<n/>")):
    case("ResourceUnknownFault", at_no_pull_point, request)

# WS-BaseNotification 4.2, Subscribe
ODD = '<z:Odd xmlns:z="urn:z"/>'
case("InvalidFilterFault", at_broker, subscribe(NOBODY, filters=ODD), UnknownFilter="{urn:z}Odd")
case("TopicExpressionDialectUnknownFault", at_broker, subscribe(NOBODY, "A", dialect="urn:other"))
case("InvalidTopicExpressionFault", at_broker, subscribe(NOBODY, "A//", dialect=raw_soap.FULL))
case("InvalidTopicExpressionFault", at_broker, subscribe(NOBODY, "none:A/B", dialect=raw_soap.CONCRETE))
case("TopicNotSupportedFault", at_fixed, subscribe(NOBODY, "unknown"))
case("TopicNotSupportedFault", at_fixed, subscribe(NOBODY, "unknown//.", dialect=raw_soap.FULL))
for bad in (("urn:other", "a"), (raw_soap.XPATH, "]["), (raw_soap.XPATH, "none:a")):
    case(
        "InvalidProducerPropertiesExpressionFault",
        at_broker,
        subscribe(NOBODY, filters=PRODUCER.format(*bad)),
    )
    case("InvalidMessageContentExpressionFault", at_broker, subscribe(NOBODY, filters=CONTENT.format(*bad)))
case(
    "UnrecognizedPolicyRequestFault",
    at_broker,
    subscribe(NOBODY, more=policy(ODD)),
    UnrecognizedPolicy="{urn:z}Odd",
)
for value in ('alpha="3"', 'batch="0"', 'expires="2999-01-01T00:00:00Z"', 'odd="1"'):
    case(
        "UnsupportedPolicyRequestFault",
        at_broker,
        subscribe(NOBODY, more=policy(DELIVERY.format(value))),
        UnsupportedPolicy="{urn:hpwsn:1}Delivery",
    )
case("NotifyMessageNotSupportedFault", lambda nodes: nodes.raw.url, subscribe(NOBODY, "A"))
for text in ("2001-01-01T00:00:00Z", "PT0S", "-PT1H", "soon"):
    case(
        "UnacceptableInitialTerminationTimeFault",
        at_broker,
        subscribe(NOBODY, "A", more=ending(text)),
        MinimumTime="",
    )
case(
    "UnacceptableInitialTerminationTimeFault",
    at_small,
    subscribe(NOBODY, "B", more=ending("PT2H")),
    MinimumTime="",
    MaximumTime="",
)
case("SubscribeCreationFailedFault", at_broker, subscribe("mailto:somebody@example.org", "A"))
case("SubscribeCreationFailedFault", at_small, subscribe(NOBODY, "B"), RECEIVER)

# WS-BaseNotification 4.3, GetCurrentMessage, and Notify to a broker
case("NoCurrentMessageOnTopicFault", at_broker, current("never"))
case("TopicNotSupportedFault", at_fixed, current("unknown"))
case("MultipleTopicsSpecifiedFault", at_fixed, current("known/*", raw_soap.FULL))
case("InvalidTopicExpressionFault", at_broker, current("A//", raw_soap.FULL))
case("TopicExpressionDialectUnknownFault", at_broker, current("A", "urn:other"))
case("TopicNotSupportedFault", at_fixed, notify("unknown", "<n/>"))
case("InvalidTopicExpressionFault", at_broker, notify("A|B", "<n/>", dialect=raw_soap.FULL))

# WS-BaseNotification 5 and 6, pull points and managers
case("UnableToCreatePullPointFault", at_small, "<w:CreatePullPoint/>", RECEIVER)
for text in ("2001-01-01T00:00:00Z", "soon"):
    case("UnacceptableTerminationTimeFault", lambda n: n.subscription, renew(text), MinimumTime="")

# WS-ResourceProperties and WS-ResourceLifetime
case("InvalidResourcePropertyQNameFault", at_broker, get("w:Filter"))
case("InvalidResourcePropertyQNameFault", lambda nodes: nodes.subscription, get("w:FixedTopicSet"))
case("UnknownQueryExpressionDialectFault", at_broker, query("a", "urn:other"))
case("InvalidQueryExpressionFault", at_broker, query("a b"))
case("QueryEvaluationErrorFault", lambda nodes: nodes.many.url, query("count(//*[..//*])"))
case("UnableToSetTerminationTimeFault", lambda nodes: nodes.subscription, end_in("soon"))
case("TerminationTimeChangeRejectedFault", lambda nodes: nodes.subscription, end_in("PT0S"))

# The journal can take no change: what an operation could not do is said by its own fault, and may be repeated
LOCKED: dict[str, tuple[Callable[[Nodes], str], str | Callable[[Nodes], str]]] = {
    "SubscribeCreationFailedFault": (lambda n: n.locked.url, subscribe(NOBODY, "A")),
    "UnableToCreatePullPointFault": (lambda n: n.locked.url, "<w:CreatePullPoint/>"),
    "PauseFailedFault": (lambda n: n.subscription, "<w:PauseSubscription/>"),
    "ResumeFailedFault": (lambda n: n.subscription, "<w:ResumeSubscription/>"),
    "UnableToDestroySubscriptionFault": (lambda n: n.subscription, "<w:Unsubscribe/>"),
    "UnableToGetMessagesFault": (lambda n: n.point, lambda n: confirm(n.batch)),
    "UnableToDestroyPullPointFault": (lambda n: n.point, "<w:DestroyPullPoint/>"),
    "LifetimeResourceNotDestroyedFault": (lambda n: n.subscription, f"<l:Destroy {SCOPE}/>"),
    "UnableToSetTerminationTimeFault": (lambda n: n.subscription, end_in("PT1H")),
}
REGISTRATIONS = frozenset(
    ("PublisherRegistrationRejectedFault", "PublisherRegistrationFailedFault", "ResourceNotDestroyedFault")
)
"""Those of publisher registrations, which are not for the nodes of this file."""
BOTH = pytest.mark.parametrize("version", ["1.1", "1.2"])


def check(reply: Reply, fault: str, version: str, own: dict[str, str], schemas: tuple[Any, Any]) -> None:
    """The fault is the one expected, whole, valid, and says whose fault it was."""
    kind = next(kind for kind in WsnFault.by_element.values() if kind.__name__ == fault)
    assert reply.detail.tag == kind.element
    assert reply.envelope.tag == f"{{{raw_soap.ENV[version]}}}Envelope"
    stamp = reply.detail.findtext("b:Timestamp", namespaces=NAMES) or ""
    assert stamp.endswith("Z") and datetime.fromisoformat(stamp).year > 2000
    assert len(reply.detail.findtext("b:Description", namespaces=NAMES) or "") > 20
    for name, value in own.items():
        field = reply.detail.find(f"w:{name}", NAMES)
        assert field is not None and field.text, name
        assert not value or qname(field) == value
        assert value or datetime.fromisoformat(field.text).tzinfo
    oasis, contract = schemas
    oasis.validate(reply.detail)
    contract.assertValid(etree.fromstring(etree.tostring(reply.detail)))


def qname(element: etree._Element) -> str:
    prefix, _, local = (element.text or "").partition(":")
    return f"{{{element.nsmap[prefix]}}}{local}"


def code(reply: Reply, version: str) -> str:
    if version == "1.1":
        return (reply.content.findtext("faultcode") or "").partition(":")[2]
    env = {"e": raw_soap.ENV["1.2"]}
    return (reply.content.findtext("e:Code/e:Value", namespaces=env) or "").partition(":")[2]


@BOTH
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_a_request_at_fault_gets_the_fault_that_the_standard_gives_for_it(
    nodes: Nodes, oasis: Any, contract: etree.XMLSchema, case: Case, version: str
) -> None:
    await nodes.prepare()
    body = case.body if isinstance(case.body, str) else case.body(nodes)
    reply = await call(case.url(nodes), body, version)
    assert reply.status == case.status[version], reply.body
    check(reply, case.fault, version, case.own, (oasis, contract))
    assert code(reply, version) == WORDS[version][case.status is RECEIVER]


@BOTH
@pytest.mark.parametrize("fault", LOCKED)
async def test_what_the_journal_cannot_take_is_the_fault_of_the_operation_and_changes_nothing(
    nodes: Nodes, oasis: Any, contract: etree.XMLSchema, fault: str, version: str
) -> None:
    await nodes.prepare()
    url, body = LOCKED[fault]
    with nodes.lock():
        reply = await call(url(nodes), body if isinstance(body, str) else body(nodes), version)
    assert reply.status == UNAVAILABLE[version], reply.body
    assert int(reply.headers["Retry-After"]) >= 1
    check(reply, fault, version, {}, (oasis, contract))
    assert code(reply, version) == WORDS[version][1]
    again = await call(nodes.subscription, renew("PT1H"), version)
    assert again.status == 200, again.body


@BOTH
async def test_a_full_journal_fails_a_subscribe_by_its_own_fault(
    tmp_path: Path, oasis: Any, contract: etree.XMLSchema, version: str
) -> None:
    with NodeProcess(tmp_path / "full", "--set", "journal.max_bytes=1MiB") as node:
        large = notify("A", f"<n>{'x' * 50_000}</n>")
        while (await call(node.url, large)).status == 202:
            pass
        for number in range(500):
            reply = await call(node.url, subscribe(f"{NOBODY}{number}?{'x' * 2000}", "A"), version)
            if reply.status != 200:
                break
    assert (reply.status, "full" in "".join(reply.detail.itertext())) == (503, True)
    check(reply, "SubscribeCreationFailedFault", version, {}, (oasis, contract))


def test_every_fault_of_the_standard_has_a_case() -> None:
    raised = {case.fault for case in CASES} | set(LOCKED) | REGISTRATIONS
    assert raised == {kind.__name__ for kind in WsnFault.by_element.values()}

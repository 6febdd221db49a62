"""Spans by OpenTelemetry: one trace from the publisher through two nodes to the consumer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from hpwsn.node.node import Node
from hpwsn.settings import (
    ClusterSettings,
    Config,
    DataSettings,
    DeliverySettings,
    NodeSettings,
    ServerSettings,
    TracingSettings,
)
from hpwsn.tracing import opentelemetry_spans
from hpwsn_client import Client, Receiver
from tests.cluster import SECRET, AdminProcess
from tests.consumer import Consumer
from tests.harness import NodeProcess
from tests.patience import PATIENCE, holds, patience
from tests.raw_soap import call, envelope, notify, send, subscribe


class Exporters:
    """An in-memory exporter for each node of a test."""

    def __init__(self) -> None:
        self.made: list[InMemorySpanExporter] = []

    def make(self, settings: TracingSettings) -> InMemorySpanExporter:
        self.made.append(InMemorySpanExporter())
        return self.made[-1]

    def spans(self) -> list[ReadableSpan]:
        """The spans of all nodes; complete once the nodes are closed."""
        return [span for each in self.made for span in each.get_finished_spans()]


@pytest.fixture
def exporters(monkeypatch: pytest.MonkeyPatch) -> Exporters:
    found = Exporters()
    monkeypatch.setattr(opentelemetry_spans, "otlp_exporter", found.make)
    return found


@asynccontextmanager
async def running(
    data: Path, name: str, admin: str = "", sample: float = 0.0, batch: int = 64
) -> AsyncIterator[Node]:
    cluster = ClusterSettings(admin=admin, secret=SECRET, start_wait=PATIENCE) if admin else ClusterSettings()
    node = Node(
        Config(
            server=ServerSettings(port=0),
            node=NodeSettings(name=name, cluster="one"),
            data=DataSettings(dir=str(data)),
            delivery=DeliverySettings(batch=batch, retry_first=0.01, retry_max=0.02),
            cluster=cluster,
            tracing=TracingSettings(enabled=True, sample=sample),
        )
    )
    await node.start()
    try:
        yield node
    finally:
        await node.close()


def url_of(node: Node) -> str:
    return f"{node.port.base_url()}/wsn"


def one(spans: list[ReadableSpan], name: str, node: str) -> ReadableSpan:
    (found,) = [
        span
        for span in spans
        if span.name == name and span.resource.attributes["service.instance.id"] == node
    ]
    return found


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return span.parent is not None and (span.parent.trace_id, span.parent.span_id) == (
        parent.context.trace_id,
        parent.context.span_id,
    )


async def test_one_trace_leads_from_the_publisher_through_two_nodes_to_the_consumer(
    tmp_path: Path, exporters: Exporters
) -> None:
    ours = InMemorySpanExporter()
    application = TracerProvider()
    application.add_span_processor(SimpleSpanProcessor(ours))
    tracer = application.get_tracer("application")
    with AdminProcess(tmp_path / "admin") as admin:
        async with (
            running(tmp_path / "a", "a", admin.base) as first,
            running(tmp_path / "b", "b", admin.base) as second,
            Receiver() as receiver,
            Client(url_of(first)) as publisher,
            Client(url_of(second)) as subscriber,
        ):
            await subscriber.subscribe("FAR:AWAY", receiver)
            forwarding = first.parts.cluster.forwarding if first.parts.cluster else None
            assert forwarding is not None
            await holds(lambda: forwarding.figures()["patterns"] > 0)
            with tracer.start_as_current_span("publish"):
                await publisher.notify("FAR:AWAY", "hello", message_id="id-1")
            got = await receiver.get(PATIENCE)
    (published,) = ours.get_finished_spans()
    spans = exporters.spans()
    chain = [
        published,
        one(spans, "receive FAR:AWAY", "a"),
        one(spans, "forward FAR:AWAY", "a"),
        one(spans, "receive FAR:AWAY", "b"),
        one(spans, "deliver FAR:AWAY", "b"),
    ]
    assert len(spans) == 4
    assert {span.context.trace_id for span in chain} == {published.context.trace_id}
    assert all(is_child(span, parent) for parent, span in pairwise(chain))
    assert [span.kind for span in chain[1:]] == [
        SpanKind.SERVER,
        SpanKind.PRODUCER,
        SpanKind.CONSUMER,
        SpanKind.CLIENT,
    ]
    assert all(dict(span.attributes or {})["messaging.system"] == "hpwsn" for span in chain[1:])
    assert all(dict(span.attributes or {})["messaging.destination.name"] == "FAR:AWAY" for span in chain[1:])
    assert all(dict(span.attributes or {})["messaging.message.id"] == "id-1" for span in chain[1:])
    last = chain[-1].context
    assert got.traceparent is not None
    assert got.traceparent.split("-")[1] == f"{last.trace_id:032x}"


async def test_a_push_of_several_traces_links_to_all_of_them(tmp_path: Path, exporters: Exporters) -> None:
    traces = [
        f"00-{number:032x}-{number:016x}-{flags}" for number, flags in ((1, "00"), (2, "01"), (3, "01"))
    ]
    listed = f'<hp:Traceparent xmlns:hp="urn:hpwsn:1">{" ".join(traces)}</hp:Traceparent>'
    async with running(tmp_path / "a", "a") as node, Consumer() as consumer:
        await call(url_of(node), subscribe(consumer.url, "B"))
        body = envelope(notify("B", "<a/>", "<b/>", "<c/>"), headers=listed)
        assert (await send(url_of(node), body)).status == 202
        await consumer.wait(lambda c: len(c.payloads()) == 3)
    assert len(consumer.requests) == 1
    spans = exporters.spans()
    received = {span.context.trace_id: span for span in spans if span.name == "receive B"}
    assert set(received) == {2, 3}  # the publisher of the first does not record it
    deliver = one(spans, "deliver B", "a")
    assert is_child(deliver, received[2])
    assert {link.context.trace_id for link in deliver.links} == {1, 3}
    assert dict(deliver.attributes or {})["messaging.batch.message_count"] == 3
    assert dict(deliver.attributes or {})["http.response.status_code"] == 202
    header = consumer.headers[0]["traceparent"]
    assert header == f"00-{2:032x}-{deliver.context.span_id:016x}-01"


async def test_a_failed_push_is_a_span_with_an_error(tmp_path: Path, exporters: Exporters) -> None:
    trace = f"00-{1:032x}-{1:016x}-01"
    async with (
        running(tmp_path / "a", "a") as node,
        Consumer(lambda number: 503 if number == 1 else 202) as consumer,
        Client(url_of(node)) as client,
    ):
        await call(url_of(node), subscribe(consumer.url, "B"))
        await client.notify("B", "x", traceparent=trace)
        await consumer.wait(lambda c: len(c.requests) == 2)
    failed, delivered = [span for span in exporters.spans() if span.name == "deliver B"]
    assert (failed.status.status_code, delivered.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    assert "503" in str(failed.status.description)


@pytest.mark.parametrize(("sample", "expected"), [(0.0, 0), (1.0, 1)])
async def test_a_publication_without_a_trace_begins_one_by_the_share_to_sample(
    tmp_path: Path, exporters: Exporters, sample: float, expected: int
) -> None:
    async with running(tmp_path / "a", "a", sample=sample) as node, Consumer() as consumer:
        await call(url_of(node), subscribe(consumer.url, "B"))
        await call(url_of(node), notify("B", "<a/>"))
        await consumer.wait(lambda c: len(c.requests) == 1)
    spans = exporters.spans()
    assert len({span.context.trace_id for span in spans}) == expected
    assert len(spans) == 2 * expected
    assert ("traceparent" in consumer.headers[0]) is bool(expected)


async def test_a_collector_gets_the_spans_by_otlp(tmp_path: Path) -> None:
    arrived: list[ExportTraceServiceRequest] = []

    async def collect(request: web.Request) -> web.Response:
        arrived.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")

    app = web.Application()
    app.router.add_post("/v1/traces", collect)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces"
    settings = ("--set", "tracing.enabled=true", "--set", f"tracing.otlp_url={url}")
    trace = f"00-{7:032x}-{7:016x}-01"
    with NodeProcess(tmp_path / "data", *settings) as node:
        async with Client(node.url) as client, patience():
            await client.notify("B", "x", traceparent=trace)
            await asyncio.to_thread(node.terminate)
    await runner.cleanup()
    spans = [s for each in arrived for r in each.resource_spans for c in r.scope_spans for s in c.spans]
    assert [(span.name, int.from_bytes(span.trace_id)) for span in spans] == [("receive B", 7)]

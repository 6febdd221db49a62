"""The spans of a node as OpenTelemetry makes them, and their way to a collector by OTLP over HTTP.

Names and attributes follow OpenTelemetry's conventions for messaging. Whether a trace is recorded is the
publisher's choice, by the sampled flag of its traceparent: where the flag is off, no span is made, and the
traceparent goes on unchanged. For publications without a traceparent, `tracing.sample` is the share for which
the node begins a trace.

| span | kind | from, to |
|---|---|---|
| receive TOPIC | SERVER, or CONSUMER from another node | admission, the commit |
| forward TOPIC | PRODUCER | sent to other nodes |
| deliver TOPIC | CLIENT | push, the consumer's answer |
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from opentelemetry import trace as api
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from hpwsn.notification import Notification, Run
from hpwsn.settings import TracingSettings
from hpwsn.tracing.span_hooks import EndDelivery
from hpwsn_client.wsn.soap.trace_context import LENGTH, is_sampled, main_trace, tracestate_of

MOST_OPEN = 10_000
"""Spans of receptions that are open at the same time; beyond that, the oldest ends."""
MOST_SPANS = 256
"""Spans of one request's reception; the traces beyond that go on unchanged, and the last span counts them."""
WITHOUT_SPAN = "hpwsn.traces.without_span"
"""The attribute with the number of traces of the request that got no span."""
MOST_LINKS = 128
"""Links of one span, as many as OpenTelemetry keeps by default."""
EXPORT_TIMEOUT = 5
"""Seconds that a collector has to take an export."""


def otlp_exporter(settings: TracingSettings) -> SpanExporter:
    """The exporter to the collector of the settings; it connects when it has spans to send."""
    return OTLPSpanExporter(settings.otlp_url, timeout=EXPORT_TIMEOUT)


class OpenTelemetrySpans:
    """See hpwsn.tracing.span_hooks.Spans."""

    def __init__(self, settings: TracingSettings, node: str, exporter: SpanExporter | None = None) -> None:
        self._sample = settings.sample
        resource = Resource.create({"service.name": "hpwsn", "service.instance.id": node})
        # The provider is this node's own: two nodes in one process do not share it.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or otlp_exporter(settings)))
        self._tracer = self._provider.get_tracer("hpwsn")
        self._open: dict[str, Span] = {}
        """The spans of receptions by their trace."""

    def received(self, runs: Sequence[Run], *, from_node: bool = False) -> None:
        """See Spans."""
        together: dict[str | None, list[Run]] = {}
        for run in runs:
            together.setdefault(run.trace, []).append(run)
        spans, without = 0, 0
        span: Span | None = None
        for trace, group in together.items():
            if not self._is_recorded(trace, from_node):
                continue
            if spans == MOST_SPANS:
                without += 1
                continue
            spans += 1
            span = self._receive(trace, group, from_node)
        if span is not None and without:
            span.set_attribute(WITHOUT_SPAN, without)

    def _is_recorded(self, trace: str | None, from_node: bool) -> bool:
        if trace is None:
            return not from_node and random.random() < self._sample
        return is_sampled(trace)

    def _receive(self, trace: str | None, runs: Sequence[Run], from_node: bool) -> Span:
        first = runs[0]
        kind = SpanKind.CONSUMER if from_node else SpanKind.SERVER
        topics = {str(run.topic) for run in runs if run.topic is not None}
        topic = topics.pop() if len(topics) == 1 else ""
        count = sum([run.size for run in runs])
        span = self._begin("receive", topic, kind, trace, count, first.message_id)
        received = _trace_of(span)
        if len(self._open) >= MOST_OPEN:
            self._open.pop(next(iter(self._open))).end()
        self._open[received] = span
        for run in runs:
            run.trace = received
        return span

    def stored(self, runs: Sequence[Run], problem: str = "") -> None:
        """See Spans."""
        for run in runs:
            span = None if run.trace is None else self._open.pop(run.trace, None)
            if span is not None:
                _end(span, problem)

    def forwarded(self, notification: Notification) -> Notification:
        """See Spans."""
        trace = notification.trace
        if trace is None or not is_sampled(trace):
            return notification
        topic = "" if notification.topic is None else str(notification.topic)
        span = self._begin("forward", topic, SpanKind.PRODUCER, trace, 1, notification.message_id)
        span.end()
        return notification._replace(trace=_trace_of(span))

    def delivering(
        self, notifications: Sequence[Notification], subscription: str, url: str
    ) -> tuple[str, EndDelivery]:
        """See Spans."""
        traces = dict.fromkeys([each.trace for each in notifications if each.trace is not None])
        main = main_trace(traces)
        if not is_sampled(main):
            return main, _ignore
        links = [Link(_context_of(each)) for each in traces if each != main][:MOST_LINKS]
        topics = {str(each.topic) for each in notifications if each.topic is not None}
        topic = topics.pop() if len(topics) == 1 else ""
        ids = {each.message_id for each in notifications}
        id_ = ids.pop() if len(ids) == 1 else None
        span = self._begin("deliver", topic, SpanKind.CLIENT, main, len(notifications), id_, links)
        span.set_attribute("messaging.destination.subscription.name", subscription)
        span.set_attribute("url.full", url)

        def end(problem: str, status: int | None) -> None:
            if status is not None:
                span.set_attribute("http.response.status_code", status)
            _end(span, problem)

        return _trace_of(span), end

    def close(self) -> None:
        """See Spans."""
        self._provider.shutdown()

    def _begin(
        self,
        name: str,
        topic: str,
        kind: SpanKind,
        trace: str | None,
        count: int,
        message_id: str | None,
        links: Sequence[Link] = (),
    ) -> Span:
        attributes: dict[str, Any] = {
            "messaging.system": "hpwsn",
            "messaging.operation.name": name,
            "messaging.operation.type": "receive" if name == "receive" else "send",
        }
        if topic:
            attributes["messaging.destination.name"] = topic
        if message_id is not None:
            attributes["messaging.message.id"] = message_id
        if count > 1:
            attributes["messaging.batch.message_count"] = count
        parent = api.INVALID_SPAN if trace is None else api.NonRecordingSpan(_context_of(trace))
        return self._tracer.start_span(
            f"{name} {topic}".rstrip(),
            api.set_span_in_context(parent),
            kind=kind,
            attributes=attributes,
            links=links,
        )


def _context_of(trace: str) -> SpanContext:
    _, trace_id, span_id, flags = trace[:LENGTH].split("-")
    state = tracestate_of(trace)
    return SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16)),
        trace_state=TraceState.from_header([state]) if state else None,
    )


def _trace_of(span: Span) -> str:
    context = span.get_span_context()
    traceparent = f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"
    state = context.trace_state.to_header()
    return f"{traceparent} {state}" if state else traceparent


def _end(span: Span, problem: str) -> None:
    if problem:
        span.set_status(StatusCode.ERROR, problem)
    span.end()


def _ignore(problem: str, status: int | None) -> None:
    """Nothing was begun."""

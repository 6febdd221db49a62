"""The spans of a reception: one pass over its runs, and a limit to the spans of one request."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hpwsn.notification import Run
from hpwsn.settings import TracingSettings
from hpwsn.tracing.opentelemetry_spans import MOST_SPANS, WITHOUT_SPAN, OpenTelemetrySpans
from hpwsn_client.wsn.topics.topic_expressions import Topic


class Counted(list[Run]):
    """Runs with a count of how many were read."""

    read = 0

    def __iter__(self) -> Iterator[Run]:
        for each in super().__iter__():
            self.read += 1
            yield each


def traceparent(number: int, flags: str = "01") -> str:
    return f"00-{number + 1:032x}-{1:016x}-{flags}"


def requested(traces: list[str]) -> Counted:
    topic = Topic.parse("a")
    return Counted(Run(topic, b"<m>", b"<n/>\x1e", 1, 1.5, trace=trace) for trace in traces)


def spans_of(runs: Counted) -> list[ReadableSpan]:
    """The finished spans, in the order in which they ended."""
    exporter = InMemorySpanExporter()
    spans = OpenTelemetrySpans(TracingSettings(enabled=True), "one", exporter)
    spans.received(runs)
    assert runs.read == len(runs)
    spans.stored(runs)
    spans.close()
    return list(exporter.get_finished_spans())


def test_each_run_is_read_once_and_a_request_has_a_limit_of_spans() -> None:
    traces = [traceparent(number) for number in range(MOST_SPANS + 3)]
    runs = requested(traces)
    spans = spans_of(runs)
    assert len(spans) == MOST_SPANS
    # Those beyond the limit keep the publisher's trace.
    assert [run.trace == trace for run, trace in zip(runs, traces, strict=True)] == (
        [False] * MOST_SPANS + [True] * 3
    )
    counts = [dict(span.attributes or {}).get(WITHOUT_SPAN) for span in spans]
    assert counts == [None] * (MOST_SPANS - 1) + [3]


def test_at_the_limit_every_trace_has_its_span() -> None:
    unsampled = [traceparent(number, "00") for number in range(MOST_SPANS, MOST_SPANS + 5)]
    runs = requested([*unsampled, *(traceparent(number) for number in range(MOST_SPANS))])
    spans = spans_of(runs)
    assert len(spans) == MOST_SPANS
    assert not any(WITHOUT_SPAN in (span.attributes or {}) for span in spans)
    assert [run.trace for run in runs[:5]] == unsampled


def test_runs_of_one_trace_share_a_span() -> None:
    runs = requested([traceparent(1), traceparent(2), traceparent(1)])
    spans = spans_of(runs)
    assert len({run.trace for run in runs}) == len(spans) == 2
    assert runs[0].trace == runs[2].trace
    assert (spans[0].attributes or {})["messaging.batch.message_count"] == 2

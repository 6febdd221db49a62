"""The traces of notifications in a push: HTTP headers, the SOAP header, and the span of the delivery.

A push of several notifications has the HTTP header of one trace, the first that is sampled or else the first;
the SOAP header hp:Traceparent has that of each notification. Where this node makes spans (hpwsn.tracing), the
span of the delivery continues that one trace and links to the others, and the HTTP header names the span.
Without spans the publisher's traceparent goes on unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hpwsn.broker.delivery.sending import Done
from hpwsn.broker.push.request import Outcome, OutcomeKind
from hpwsn.broker.subscriptions.subscription import Prepared
from hpwsn.notification import Notification
from hpwsn.tracing.span_hooks import Spans
from hpwsn_client.wsn.soap.trace_context import encode_traces, http_headers, main_trace


class DeliveryTracing(Protocol):
    """Adds the trace of a delivery to its request."""

    def begin(
        self, subscription: str, url: str, notifications: Sequence[Notification], done: Done
    ) -> tuple[bytes, Done]:
        """The HTTP header lines of a push with a trace, and the callback to give in place of `done`.

        `subscription` is its id.
        """


class NoSpans:
    """Hands the publisher's trace on, as it came."""

    def begin(
        self, subscription: str, url: str, notifications: Sequence[Notification], done: Done
    ) -> tuple[bytes, Done]:
        """See DeliveryTracing."""
        return header_lines(main_trace(each.trace for each in notifications)), done


NO_SPANS = NoSpans()


class SpannedDeliveries:
    """Makes a span of each push, which the consumer continues."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans

    def begin(
        self, subscription: str, url: str, notifications: Sequence[Notification], done: Done
    ) -> tuple[bytes, Done]:
        """See DeliveryTracing."""
        trace, end = self._spans.delivering(notifications, subscription, url)

        def ended(outcome: Outcome) -> None:
            delivered = outcome.kind is OutcomeKind.DELIVERED
            end("" if delivered else outcome.reason or outcome.kind.value, outcome.status)
            done(outcome)

        return header_lines(trace), ended


def header_lines(trace: str) -> bytes:
    """The HTTP headers of a trace, as lines that end in CR LF."""
    return "".join(f"{name}: {value}\r\n" for name, value in http_headers(trace).items()).encode()


def with_soap_header(prepared: Prepared, notifications: Sequence[Notification]) -> bytes:
    """What stands before the first content, with the traces of all as a SOAP header."""
    before, end = prepared.before_first, prepared.header_end
    if end is None:
        return before
    return b"".join((before[:end], encode_traces([each.trace for each in notifications]), before[end:]))

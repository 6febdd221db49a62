"""Spans of a node's own work; only this folder imports OpenTelemetry, and only where tracing is on."""

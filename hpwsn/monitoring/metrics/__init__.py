"""Metrics for Prometheus: tables over figures, histograms, and the answer to a scrape."""

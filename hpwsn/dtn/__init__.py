"""Delay tolerance: delivery to subscribers that are reachable only now and then."""

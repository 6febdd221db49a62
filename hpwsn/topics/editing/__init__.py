"""Edits of declared topics as data: what is asked for, and the plan that carries it out and can be undone."""

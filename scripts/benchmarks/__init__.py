"""Benchmarks: one module each, run by `scripts/bench`.

A benchmark is a module here with a function `run(options: Options) -> Table`; the first line of its docstring
says what it measures. It compares ratios within one run, since absolute numbers differ from
machine to machine.
"""

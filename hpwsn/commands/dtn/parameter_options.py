"""The parameters of a simulated run as options, made from the fields of Parameters with their limits."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING

from hpwsn.errors import BadArguments

if TYPE_CHECKING:
    from hpwsn.dtn.scenario.simulation_parameters import Parameters

MOST_RUNS = 100_000
MOST_PROCESSES = 1024


def add_run_options(parser: argparse.ArgumentParser, runs: int) -> None:
    """Add how often, from which seed and in how many processes to run."""
    parser.add_argument(
        "--runs", type=_from_one_to(MOST_RUNS), default=runs, metavar="N", help=f"runs (default: {runs})"
    )
    parser.add_argument("--seed", type=seed, default=1, metavar="X", help="random seed (default: 1)")
    parser.add_argument(
        "--processes",
        type=_from_one_to(MOST_PROCESSES),
        metavar="N",
        help="parallel processes (default: one for each processor)",
    )


def seed(text: str) -> int:
    """A seed of random numbers: 0 or more."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is not a seed; write a whole number of at most 18 digits")
    return int(text)


def _from_one_to(most: int) -> type[int]:
    def parse(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = 0
        if not 1 <= found <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return found

    return parse  # type: ignore[return-value]  # argparse takes any function of a text


def add_parameter_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each parameter; those not given keep the paper's default."""
    from hpwsn.dtn.scenario.simulation_parameters import Parameters

    group = parser.add_argument_group("parameters, with the paper's defaults")
    readings = parser.add_argument_group("readings, where the paper allows several")
    for one in fields(Parameters):
        about, choices = one.metadata["about"], one.metadata.get("choices")
        (group if choices is None else readings).add_argument(
            "--" + one.name.replace("_", "-"),
            dest=f"parameter_{one.name}",
            type=_reader_of(one.default),
            choices=choices,
            metavar=None if choices else "N",
            help=f"{about} (default: {one.default if choices else format(one.default, 'g')})",
        )


def _reader_of(default: object) -> Callable[[str], str | float]:
    """What reads the value of a parameter with such a default."""
    return str if isinstance(default, str) else int if isinstance(default, int) else float


def parameters_of(arguments: argparse.Namespace) -> Parameters:
    """The parameters that the options give; BadArguments names the option that is out of its limits."""
    from hpwsn.dtn.scenario.simulation_parameters import Parameters, WrongParameter

    given = {
        one.name: value
        for one in fields(Parameters)
        if (value := getattr(arguments, f"parameter_{one.name}", None)) is not None
    }
    try:
        return Parameters(**given)
    except WrongParameter as error:
        raise BadArguments(f"--{error.name.replace('_', '-')} {error.reason}") from None

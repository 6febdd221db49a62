"""Runs a protocol on a scenario, and measures it as the CET paper does.

Delivery is the number of events received by subscribers that want them, of all that they want. Copies are
transmissions by owners of an event, for each event. The lifetime is that of the sensor that used the most
energy, at the power of this run; a sensor that is empty before the end ends it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np

from hpwsn.dtn.scenario.scenario import Scenario, World, draw_scenario
from hpwsn.dtn.scenario.simulation_parameters import Parameters
from hpwsn.dtn.simulation.community_collection import run_cet
from hpwsn.dtn.simulation.compiled_functions import compiled
from hpwsn.dtn.simulation.direct_gathering import run_dg
from hpwsn.dtn.simulation.replication import run_replication
from hpwsn.dtn.simulation.simulation_state import (
    CET,
    DG,
    ELECTIONS,
    GIVEN,
    OWNER_SENT,
    REFUSED,
    SENT,
    TOO_OFTEN,
    TOO_OLD,
    Protocol,
    Rules,
    State,
    new_state,
    rules_of,
)

DAY = 86_400.0
_FUNCTIONS: Mapping[str, Callable[..., None]] = {CET: run_cet, DG: run_dg}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measures of one run; None where nothing was there to measure."""

    delivery: float | None
    """Percent of the wanted events."""
    copies: float | None
    delay: float | None
    """Mean time from creation to reception, s."""
    life: float | None
    """Lifetime of the network, days."""
    transmissions: float | None
    """Transmissions for each event over all hops."""
    holders: float | None
    """Nodes that ever had an event."""
    events: int
    wanted: int
    received: int
    given_back: int
    elections: int
    dropped_old: int
    dropped_often: int
    refused: int

    def fields(self) -> dict[str, float | int | None]:
        """The measures by name."""
        return asdict(self)


class Simulation:
    """One run of one protocol, which can be stopped at every second to look at it."""

    def __init__(
        self,
        scenario: Scenario,
        protocol: Protocol,
        seed: int,
        *,
        interpreted: bool = False,
        log_lines: int = 0,
    ) -> None:
        self.scenario = scenario
        self.protocol = protocol
        self.world: World = scenario.world()
        self.rules: Rules = rules_of(scenario.parameters, protocol)
        self.state: State = new_state(self.world, scenario.parameters, protocol, seed, log_lines)
        self.time = -1
        function = _FUNCTIONS.get(protocol, run_replication)
        self._advance = function if interpreted else _compiled(function)

    def run_until(self, second: int) -> None:
        """Go on up to the second, inclusive; never beyond the end."""
        last = min(second, self.scenario.parameters.duration)
        if last > self.time:
            self._advance(self.world, self.state, self.rules, self.time + 1, last)
            self.time = last

    def outcome(self) -> Outcome:
        """The measures up to now."""
        world, state = self.world, self.state
        events, wanted = world.created.size, int(world.wants.sum())
        received = state.received_at >= 0
        count = int(received.sum())
        delays = (state.received_at - world.created[:, None])[received]
        return Outcome(
            delivery=100.0 * count / wanted if wanted else None,
            copies=float(state.tally[OWNER_SENT] / events) if events else None,
            delay=float(delays.mean()) if count else None,
            life=self._life(),
            transmissions=float(state.tally[SENT] / events) if events else None,
            holders=float(state.held.sum() / events) if events else None,
            events=events,
            wanted=wanted,
            received=count,
            given_back=int(state.tally[GIVEN]),
            elections=int(state.tally[ELECTIONS]),
            dropped_old=int(state.tally[TOO_OLD]),
            dropped_often=int(state.tally[TOO_OFTEN]),
            refused=int(state.tally[REFUSED]),
        )

    def _life(self) -> float | None:
        if np.isfinite(self.state.empty_at[0]):
            return float(self.state.empty_at[0] / DAY)
        energy = self.scenario.parameters.energy
        used = energy - float(self.state.energy.min())
        return energy / used * max(1, self.time) / DAY if used > 0 else None


@cache
def _compiled(function: Callable[..., None]) -> Callable[..., None]:
    return compiled(function)


def simulate(parameters: Parameters, protocol: Protocol, seed: int, run: int = 0) -> Outcome:
    """The outcome of a whole run; the same for the same arguments."""
    simulation = Simulation(draw_scenario(parameters, seed, run), protocol, seed + run)
    simulation.run_until(parameters.duration)
    return simulation.outcome()

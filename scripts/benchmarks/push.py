"""Push: notifications posted to a consumer per second over 32 connections, 1 and 64 per POST."""

import asyncio
import sys
import time

from benchmarks.frame import Check, Options, Row, Table, take_turns
from benchmarks.tools.cores import pin_server, pinning_notes
from benchmarks.tools.load import BUSY, Busy, Load, Sample
from benchmarks.tools.sink import Tally

CONNECTIONS = 32
MESSAGES = (1, 64)
KINDS = {"raw": "raw client", "hpwsn": "HPwsn", "aiohttp": "aiohttp client"}


def run(options: Options) -> Table:
    """Each way posts to the same consumer, in turns."""
    with Load(options) as load:
        url = load.consumer(Tally())
        busy = Busy()
        groups = [_measure(load, url, messages, options, busy) for messages in MESSAGES]
    checks = tuple(
        Check.ratio(f"{messages} per POST, against the raw client", rows[1], rows[0], 70, "%")
        for messages, rows in zip(MESSAGES, groups, strict=True)
    )
    notes = (*pinning_notes(), *filter(None, (busy.warning(),)))
    return Table("push", "notifications/s", tuple(groups), checks, notes, BUSY)


def _measure(load: Load, url: str, messages: int, options: Options, busy: Busy) -> tuple[Row, ...]:
    def sample(kind: str) -> Sample:
        return load.run(_push(kind, url, messages, options.seconds))

    calls = {kind: busy.rate(f"{kind} {messages}", lambda kind=kind: sample(kind)) for kind in KINDS}  # type: ignore[misc]
    samples = take_turns(calls, options.rounds, f"{messages} per POST")
    return tuple(
        Row.of(f"{name}, × {messages}", samples[kind], busy.note(f"{kind} {messages}"))
        for kind, name in KINDS.items()
    )


async def _push(kind: str, url: str, messages: int, seconds: float) -> Sample:
    """Run the pusher on the server's core, while this loop is the consumer."""
    arguments = [kind, url, str(CONNECTIONS), str(messages), str(seconds)]
    began, cpu = time.perf_counter(), time.process_time()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.tools.pushers", *arguments,
        stdout=asyncio.subprocess.PIPE, preexec_fn=pin_server,
    )  # fmt: skip
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"the pusher {kind} failed; the lines above say why")
    rate, server = map(float, output.split())
    return Sample(rate * messages, server, (time.process_time() - cpu) / (time.perf_counter() - began))

"""Workers of the parallel matching tree that are processes: they live until closed, and keep their blocks.

Owns the processes and their pipes; what they do is hpwsn.matching.papers.parallel. Events and answers are
pickled, a batch at a time, so that the trip pays. Threads would take turns at the interpreter's lock.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from hpwsn.matching.language.predicates import Event
from hpwsn.matching.papers.parallel import BlockMatcher, NumberedConjunction, join_answers


class ProcessWorkers:
    """As many processes as there are to be workers."""

    def __init__(self, count: int) -> None:
        # Spawned, since a fork of a process with threads may hold their locks for ever.
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(count)]
        self._ours = [ours for ours, _ in pipes]
        self._processes = [
            context.Process(target=_work, args=(theirs,), daemon=True, name=f"matching-{number}")
            for number, (_, theirs) in enumerate(pipes)
        ]
        for process, (_, theirs) in zip(self._processes, pipes, strict=True):
            process.start()
            theirs.close()
        self._busy = 0

    def assign(self, blocks: Sequence[Sequence[NumberedConjunction]]) -> None:
        """Give each process its block; there may be fewer blocks than processes."""
        if len(blocks) > len(self._ours):
            raise ValueError(f"{len(blocks)} blocks for {len(self._ours)} processes; cut into fewer")
        self._busy = len(blocks)
        for pipe, block in zip(self._ours, blocks, strict=False):
            pipe.send(("assign", list(block)))

    def match(self, events: Sequence[Event]) -> tuple[list[list[int]], int]:
        """The numbers found for each event by all processes, and their evaluations."""
        busy = self._ours[: self._busy]
        for pipe in busy:
            pipe.send(("match", [dict(event) for event in events]))
        return join_answers([pipe.recv() for pipe in busy], len(events))

    def close(self) -> None:
        """End the processes and wait for them."""
        for pipe in self._ours:
            pipe.close()
        for process in self._processes:
            process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _work(pipe: Connection) -> None:
    """Answer until the other end is closed."""
    matcher = BlockMatcher(())
    while True:
        try:
            order, argument = pipe.recv()
        except EOFError:
            return
        if order == "assign":
            matcher = BlockMatcher(argument)
        else:
            pipe.send(matcher.match(argument))

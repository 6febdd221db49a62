"""A user-defined function of Arrow batches: `op = "function"` with `batches = true`.

The function gets a `pyarrow.RecordBatch` with the attributes of its input, and returns a `RecordBatch`, a
`Table`, several of them (any iterable), or None. It is called once for each batch, not for each event, so its
cost for a row is that of Arrow's own functions. How events are divided into batches is up to Spark: a result
must not depend on it. The result must have every attribute of the schema, in a type that converts to the
attribute's without loss; other columns are dropped. Arrow is loaded only by Spark's workers
(hpwsn.streams.spark.user_functions).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hpwsn.streams.definition.operator import BaseStep, NeedsSpark
from hpwsn.streams.definition.schema import Event


@dataclass(frozen=True)
class BatchFunction(BaseStep):
    """Calls a user-defined function for each Arrow batch."""

    call: Callable[..., Any]
    arguments: Mapping[str, object]

    def run(self, streams: Sequence[list[Event]], until: datetime | None) -> list[Event]:
        """Not possible in plain Python, which has no Arrow batches."""
        raise NeedsSpark("a function of batches")

    def results(self, batch: Any) -> tuple[Any, ...]:
        """The batches and tables that the call for one batch returns; none for None."""
        found = self.call(batch, **self.arguments)
        if found is None:
            return ()
        # A table and a batch can be iterated too, but by column.
        return (found,) if hasattr(found, "schema") else tuple(found)

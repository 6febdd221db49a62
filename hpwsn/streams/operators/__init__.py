"""The operators, one module a kind; spec of stream data services, "Operators and their Spark meaning"."""

from collections.abc import Mapping

from hpwsn.streams.operators import aggregate, filter, function, increment, join, merge, project, sort  # noqa: A004
from hpwsn.streams.operators.port import Kind

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        filter.KIND,
        project.KIND,
        sort.KIND,
        *aggregate.KINDS,
        *increment.KINDS,
        merge.KIND,
        join.KIND,
        function.KIND,
    )
}
"""All operators by their names in definitions."""

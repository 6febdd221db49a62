"""The operators, one module per kind: those of the paper on stream data services, and SQL."""

from collections.abc import Mapping

from hpwsn.streams.definition.operator import OperatorKind
from hpwsn.streams.operators import aggregate, extremes, function, increment, join, merge, project, sort, sql
from hpwsn.streams.operators import filter as filter_

KINDS: Mapping[str, OperatorKind] = {
    kind.name: kind
    for kind in (
        filter_.KIND,
        project.KIND,
        sort.KIND,
        *aggregate.KINDS,
        *increment.KINDS,
        *extremes.KINDS,
        merge.KIND,
        join.KIND,
        function.KIND,
        sql.KIND,
    )
}
"""All operators by their names in definitions."""

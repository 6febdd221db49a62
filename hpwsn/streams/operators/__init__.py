"""The operators, one module per kind. Their names are those of the paper on stream data services."""

from collections.abc import Mapping

from hpwsn.streams.definition.operator import OperatorKind
from hpwsn.streams.operators import aggregate, function, increment, join, merge, project, sort
from hpwsn.streams.operators import filter as filter_

KINDS: Mapping[str, OperatorKind] = {
    kind.name: kind
    for kind in (
        filter_.KIND,
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

"""The order in which services publish, by their operators."""

import pytest

from hpwsn.streams.definition.builder import Service
from hpwsn.streams.plan.output_order import Order, OutputOrder, output_order
from hpwsn.streams.plan.plan import build_plan

COUNT = {"op": "count", "by": "c", "window": "10 s", "output": "n"}
FILTER = {"op": "filter", "where": "v > 1"}
SUM = {"op": "incrSum", "attribute": "v", "by": "c"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT c, v FROM input WHERE v > 1", Order.INPUT),
        ("SELECT upper(c) AS c, v FROM i -- distinct, group by", Order.INPUT),
        ("SELECT c, 'order by' AS v FROM i", Order.INPUT),
        ("SELECT c, v FROM i a, i b WHERE a.c = b.c", Order.NONE),
        ("SELECT c, v FROM i JOIN i b ON i.c = b.c", Order.NONE),
        ("SELECT DISTINCT c, v FROM i", Order.NONE),
        ("SELECT /*+ REPARTITION(4) */ c, v FROM i", Order.NONE),
        ("SELECT c, v FROM i DISTRIBUTE BY c", Order.NONE),
        ("SELECT c, v FROM i LIMIT 5", Order.NONE),
        ("SELECT c, v FROM i WHERE c IN (SELECT c FROM i)", Order.NONE),
    ],
)
def test_a_query_keeps_the_order_unless_something_in_it_regroups(query, expected):
    service = Service("urn:x", topic="x")
    service.input("i", source="topic", topic="i", schema="c STRING, v INT, time TIMESTAMP")
    service.op("sql", query=query, schema="c STRING, v INT")
    assert output_order(build_plan(service.definition())).order is expected


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([FILTER, {"op": "project", "rename": {"c": "k"}}], OutputOrder(Order.INPUT)),
        ([COUNT], OutputOrder(Order.NONE, ("c",))),
        ([COUNT, {"op": "filter", "where": "n > 1"}], OutputOrder(Order.NONE, ("c",))),
        ([COUNT, {"op": "project", "rename": {"c": "k"}}], OutputOrder(Order.NONE, ("k",))),
        ([COUNT, {"op": "project", "attributes": ["n", "time"]}], OutputOrder(Order.NONE)),
        ([{"op": "count", "window": "10 s"}], OutputOrder(Order.NONE)),
        ([{"op": "count", "by": "c", "window": "4 rows"}], OutputOrder(Order.GROUPS, ("c",))),
        ([SUM], OutputOrder(Order.GROUPS, ("c",))),
        ([{**SUM, "window": "10 s"}], OutputOrder(Order.GROUPS, ("c",))),
        ([{"op": "sort", "attribute": "v", "window": "10 s", "by": "c"}], OutputOrder(Order.NONE, ("c",))),
        ([COUNT, {"op": "max", "attribute": "n", "window": "20 s"}], OutputOrder(Order.NONE)),
        ([{"op": "max", "attribute": "v", "by": "c", "window": "10 s"}], OutputOrder(Order.NONE, ("c",))),
        ([{"op": "max", "attribute": "v", "by": "c", "window": "4 rows"}], OutputOrder(Order.GROUPS, ("c",))),
        (
            [{"op": "incrMin", "attribute": "v", "by": "c", "window": "10 s"}],
            OutputOrder(Order.GROUPS, ("c",)),
        ),
    ],
)
def test_the_last_operator_that_regroups_decides(ops, expected):
    service = Service("urn:x", topic="x")
    service.input("i", source="topic", topic="i", schema="c STRING, v INT, time TIMESTAMP")
    for op in ops:
        service.op(**op)
    assert output_order(build_plan(service.definition())) == expected

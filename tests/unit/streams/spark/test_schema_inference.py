"""The schema of a sample: types that hold all values, in the order in which the fields appear."""

import pytest

from hpwsn.streams.spark.reading.schema_inference import schema_of_events


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2**40, None], "bigint"),
        ([1, 2.5], "double"),
        ([2**70], "double"),
        ([True, None], "boolean"),
        ([True, 1], "string"),
        (["2024-03-04T06:00:00Z", "2024-03-04 06:00"], "timestamp"),
        (["2024-03-04T06:00:00Z", "soon"], "string"),
        (["2024-03-04"], "string"),
        (["2024-13-04T06:00:00Z"], "string"),
        (["1"], "string"),
        ([{"a": 1}], "string"),
        ([[1]], "string"),
        ([None], "string"),
    ],
)
def test_a_field_has_the_type_of_its_values(values, kind):
    assert schema_of_events([{"f": value} for value in values]).simpleString() == f"struct<f:{kind}>"


def test_fields_are_in_the_order_of_their_appearance_and_case_does_not_count():
    found = schema_of_events([{"b": 1}, {"a": "x", "B": 2.5}, {"wind speed": 1, "a": None}])
    assert [(field.name, field.dataType.simpleString()) for field in found] == [
        ("b", "bigint"),
        ("a", "string"),
        ("wind speed", "bigint"),
    ]

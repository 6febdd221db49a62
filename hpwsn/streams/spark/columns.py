"""Converts types and conditions to Spark.

Conditions have the broker's meaning (hpwsn.matching.language.predicates): numbers compare as doubles, NaN
satisfies no comparison, and null satisfies no comparison but every negated one.
"""

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql import types as t

from hpwsn.matching.language.predicates import Disjunction, Operand, Operator, Predicate
from hpwsn.matching.language.values import Instant
from hpwsn.streams.definition.schema import Schema, Type, Value

_TYPES: Mapping[str, Callable[[], t.DataType]] = {
    "BOOLEAN": t.BooleanType,
    "TINYINT": t.ByteType,
    "SMALLINT": t.ShortType,
    "INT": t.IntegerType,
    "BIGINT": t.LongType,
    "FLOAT": t.FloatType,
    "DOUBLE": t.DoubleType,
    "STRING": t.StringType,
    "DATE": t.DateType,
    "TIMESTAMP": t.TimestampType,
}
_COMPARE: Mapping[Operator, Callable[[Column, Column], Column]] = {
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
}


def spark_type(kind: Type) -> t.DataType:
    """The Spark type of the same name."""
    if kind.name == "DECIMAL":
        return t.DecimalType(kind.precision, kind.scale)
    return _TYPES[kind.name]()


def spark_schema(schema: Schema) -> t.StructType:
    """The Spark schema, in which every attribute may be null."""
    return t.StructType([t.StructField(name, spark_type(kind)) for name, kind in schema])


def column(name: str) -> Column:
    """The column of an attribute; its name may contain any characters."""
    return fn.col("`" + name.replace("`", "``") + "`")


def literal(value: Value, kind: Type) -> Column:
    """A value as a column of its type; timestamps do not depend on the session's time zone."""
    if isinstance(value, datetime):
        return fn.timestamp_micros(fn.lit(round(value.timestamp() * 1_000_000)))
    return fn.lit(value).cast(spark_type(kind))


def condition_column(condition: Disjunction, schema: Schema) -> Column:
    """A column that says whether a row satisfies the condition: true or false, never null."""
    conjunctions = [
        reduce(operator.and_, [_holds(one, schema) for one in conjunction], fn.lit(True))
        for conjunction in condition
    ]
    return reduce(operator.or_, conjunctions, fn.lit(False))


def _holds(predicate: Predicate, schema: Schema) -> Column:
    test = fn.coalesce(_test(predicate, schema[predicate.attribute]), fn.lit(False))
    return ~test if predicate.negated else test


def _test(predicate: Predicate, kind: Type) -> Column:
    name, operands = predicate.attribute, predicate.operands
    if predicate.operator is Operator.EXISTS:
        return column(name).isNotNull()
    if predicate.operator is Operator.LIKE:
        return column(name).like(_like(str(operands[0])))
    seen, values = _seen(column(name), kind), [_operand(one) for one in operands]
    if predicate.operator is Operator.BETWEEN:
        found = (seen >= values[0]) & (seen <= values[1])
    elif predicate.operator is Operator.IN:
        found = reduce(operator.or_, [seen == one for one in values])
    else:
        found = _COMPARE[predicate.operator](seen, values[0])
    return found & ~fn.isnan(seen) if kind.is_number else found


def _seen(attribute: Column, kind: Type) -> Column:
    """An attribute in the form that predicates compare: numbers as doubles, timestamps as microseconds."""
    if kind.is_number:
        return attribute.cast("double")
    if kind.name in ("DATE", "TIMESTAMP"):
        return fn.unix_micros(attribute.cast("timestamp"))
    return attribute


def _operand(operand: Operand) -> Column:
    if isinstance(operand, Instant):
        return fn.lit(round(operand.seconds * 1_000_000))
    return fn.lit(operand)


def _like(pattern: str) -> str:
    """The pattern without the backslashes that Spark does not allow."""
    found, characters = [], iter(pattern)
    for one in characters:
        if one != "\\":
            found.append(one)
            continue
        literally = next(characters, "\\")
        found.append("\\" + literally if literally in "%_\\" else literally)
    return "".join(found)

"""Shows a plan: a table with the output of each operator, a diagram of the streams, and both as data."""

from collections.abc import Iterator, Sequence
from textwrap import shorten

from hpwsn.streams.definition.operator import StreamType
from hpwsn.streams.operators.function import function_name
from hpwsn.streams.plan.plan import Plan, PlanNode

MAX_ARGUMENT = 60
"""Maximum characters of an argument in the table and the diagram."""

MAX_TEXT = 1000
"""Maximum characters of an operator in the list that a job registers."""


def draw(plan: Plan, ascii_only: bool = False) -> Iterator[str]:
    """The lines of the service's name and topic, the table, the diagram and the constraints."""
    one = plan.definition
    yield f"{one.uri} → {one.topic}" if not ascii_only else f"{one.uri} -> {one.topic}"
    if one.description:
        yield f"  {' '.join(one.description.split())}"
    yield ""
    yield from table(plan)
    yield ""
    yield from diagram(plan, ascii_only)
    if one.constraints:
        yield ""
    for constraint in one.constraints:
        yield f"  constraint {constraint.attribute}: {constraint.text}"


def table(plan: Plan) -> list[str]:
    """A line for each input and operator: the name of its stream, and its attributes."""
    rows = [("", "operator", "stream", "schema")]
    rows += [
        ("", _source(plan, name), name, str(stream_type.schema)) for name, stream_type in plan.inputs.items()
    ]
    rows += [
        (str(number), _operator(node), node.output_name, str(node.step.output.schema))
        for number, node in enumerate(plan.nodes, 1)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]).rstrip()
        for row in rows
    ]


def diagram(plan: Plan, ascii_only: bool = False) -> list[str]:
    """The streams as a tree with the topic as its root; the inputs of an operator are indented below it."""
    branches = ("|-- ", "`-- ", "|   ") if ascii_only else ("├── ", "└── ", "│   ")
    nodes = {node.output_name: node for node in plan.nodes}
    lines = [f"topic {plan.definition.topic}"]
    lines += _below([plan.output_name], plan, nodes, "", branches)
    return lines


def _below(
    names: Sequence[str], plan: Plan, nodes: dict[str, PlanNode], indent: str, branches: tuple[str, str, str]
) -> Iterator[str]:
    fork, last, trunk = branches
    for position, name in enumerate(names, 1):
        ends = position == len(names)
        yield indent + (last if ends else fork) + _title(name, plan, nodes)
        input_names = nodes[name].input_names if name in nodes else ()
        yield from _below(input_names, plan, nodes, indent + ("    " if ends else trunk), branches)


def _title(name: str, plan: Plan, nodes: dict[str, PlanNode]) -> str:
    if name not in nodes:
        return f"{name}: {_source(plan, name)}"
    op = nodes[name].op
    return f"{_operator(nodes[name])} as {name}" if op.output else _operator(nodes[name])


def _source(plan: Plan, name: str) -> str:
    one = plan.definition.inputs[name]
    what = next((one.text(key) for key in ("service", "topic", "path", "host") if one.text(key)), "")
    return f"{one.source} {what}".rstrip()


def _operator(node: PlanNode) -> str:
    op, inputs = node.op, node.input_names
    kind = getattr(node.step, "window", None)
    window = f" over {kind}" if kind else ""
    by = f" by {', '.join(op.by)}" if op.by else ""
    others = f" with {', '.join(inputs[1:])}" if len(inputs) > 1 else ""
    shown = ("attribute", "is", "value", "where", "on", "function", "query")
    about = "".join(f" {_argument(op.arguments[key])}" for key in shown if key in op.arguments)
    return f"{op.op}{about}{others}{by}{window}"


def _argument(value: object) -> str:
    """An argument on one line: a function by its name, a query by its beginning."""
    return function_name(value) if callable(value) else shorten(str(value), MAX_ARGUMENT, placeholder=" …")


def attributes(stream_type: StreamType) -> list[dict[str, str]]:
    """The attributes with their types, for JSON output."""
    return [{"name": name, "type": str(kind)} for name, kind in stream_type.schema]


def outline(plan: Plan) -> dict[str, object]:
    """The plan as data for JSON: inputs, operators in order, the output stream, and the diagram's lines."""
    return {
        "inputs": [
            {"name": name, "source": _source(plan, name), "schema": str(stream_type.schema)}
            for name, stream_type in plan.inputs.items()
        ],
        "operators": [
            {
                "operator": _operator(node),
                "inputs": list(node.input_names),
                "output": node.output_name,
                "schema": str(node.step.output.schema),
            }
            for node in plan.nodes
        ],
        "output": plan.output_name,
        "diagram": diagram(plan),
    }


def operator_list(plan: Plan) -> list[dict[str, object]]:
    """The operators in order, as a job registers them.

    An input is the name of an input of the service, or the position of an earlier operator, from 0.
    """
    positions = {node.output_name: position for position, node in enumerate(plan.nodes)}
    return [
        {
            "op": node.op.op,
            "inputs": [positions.get(name, name) for name in node.input_names],
            "text": shorten(_operator(node), MAX_TEXT, placeholder=" …"),
        }
        for node in plan.nodes
    ]

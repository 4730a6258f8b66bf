"""How often the body of a Loop runs that counts before it ends.

Exporters of recurrent layers write such a Loop: a carried value counts, and the condition compares
it with the number of times.
"""

from collections.abc import Sequence

import numpy as np
import onnx

from arenite.planner.importers.onnx.node import Operand
from arenite.planner.importers.onnx.order import node_reads, ordered_nodes, subgraphs
from arenite.planner.importers.onnx.values import Values
from arenite.planner.importers.onnx.walk import Scope, Walk

_MOST_CALLS, _MOST_OPERATORS, _MOST_CARRIED = 20_000, 200, 1024
"""Most computations of a model, operators of a body, and elements of a value that it carries."""


def counted_iterations(
    walk: Walk, body: onnx.GraphProto, scope: Scope, given: Sequence[Operand], most: int | None
) -> int | None:
    """Return how often a body runs whose condition is made of what is known, None for others.

    Args:
        body: That of a Loop whose condition is true at first.
        scope: That of the body, which has been walked.
        given: The operands that its carried values begin with.
        most: How often it runs at most; None for any number.

    Cost: O(_MOST_CALLS) for all Loops of a model.
    """
    nodes = _leading_to_condition(body)
    if len(nodes) > _MOST_OPERATORS:
        return None
    calls = [
        (node, walk.operands(node, scope), [_operand(walk, scope, name) for name in node.output])
        for node in nodes
        if not any(subgraphs(node))
    ]
    made = {operand.name for *_, outputs in calls for operand in outputs}
    inputs, (condition, *results) = (
        [walk.find(scope, each.name) for each in values] for values in (body.input, body.output)
    )
    read = {condition, *(operand.name for _, operands, _ in calls for operand in operands)}
    carried = {
        name: (result, walk.values.get(operand.name))
        for name, result, operand in zip(inputs[2:], results, given, strict=False)
        if name in read
    }
    known = {name: array for name, (_, array) in carried.items()}
    if any(array is None or array.size > _MOST_CARRIED for array in known.values()):
        return None
    constants = {name: walk.values.get(name) for name in read - made - {*inputs, ""}}
    budget = (_MOST_CALLS - walk.num_counted) // max(len(calls), 1)
    for number in range(budget if most is None else min(most, budget)):
        walk.num_counted += len(calls)
        known |= {inputs[0]: np.asarray(number, np.int64), inputs[1]: np.asarray(True)}
        values = Values(walk.values.folder, walk.dialect)
        for name, array in {**constants, **known}.items():
            if array is not None:
                values.add_array(name, array)
        for call in calls:
            values.add_computation(*call)
        goes_on = values.get(condition)
        if goes_on is None:
            return None
        if not goes_on.all():
            return number + 1
        known = {name: values.get(result) for name, (result, _) in carried.items()}
    return most if most is not None and most <= budget else None


def _operand(walk: Walk, scope: Scope, local: str) -> Operand:
    name = walk.find(scope, local) if local else ""
    return Operand(name, walk.types[name] if name else None)


def _leading_to_condition(body: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes that make the condition, in an order that can run.

    Those are among them that make what the next iteration reads for it.
    """
    graph = onnx.GraphProto(node=body.node, output=body.output[:1])
    carried = {
        given.name: made for given, made in zip(body.input[2:], body.output[1:], strict=False)
    }
    while True:
        nodes = [node for _, node in ordered_nodes(graph)[0]]
        read = {name for node in nodes for name in node_reads(node)}
        read.update(output.name for output in graph.output)
        missing = [carried.pop(name) for name in read & carried.keys()]
        if not missing:
            return nodes
        graph.output.extend(missing)

"""Loop and Scan: one operator, whose scratch holds what its body needs."""

from collections.abc import Sequence

import numpy as np
import onnx

from arenite.planner.dtypes import DType
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.importers.onnx.body import (
    Body,
    define_inputs,
    opaque_step,
    require,
    subgraph,
    walk_body,
)
from arenite.planner.importers.onnx.node import Operand
from arenite.planner.importers.onnx.scope import Scope
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.importers.onnx.walk import Walk
from arenite.planner.program import Step

_FIRST_SCAN_WITHOUT_BATCH = 9


def walk_loop(walk: Walk, node: onnx.NodeProto, name: str, scope: Scope) -> list[Step]:
    """Return the step that stands for a Loop.

    Raises:
        ModelFormatError: The node and its body do not fit together.
        UnsupportedModelError: The type of an output is not known before the run.
    """
    operands = walk.operands(node, scope)
    body = subgraph(node, name, "body")
    require(name, len(body.input) == max(2, len(operands)), "number of inputs")
    trip_count, condition = (*operands, Operand("", None), Operand("", None))[:2]
    carried = _types(name, operands[2:])
    require(name, len(body.output) > len(carried), "number of outputs")
    inner = Scope(scope)
    given = [TensorType(DType.INT64, ()), TensorType(DType.BOOL, ()), *carried]
    inputs = define_inputs(walk, body, inner, given)
    # The body runs only while this is true.
    walk.values.add_array(inputs[1], np.asarray(True))
    walked = walk_body(walk, body, inner, inputs)
    _check_carried(name, carried, walked.types[1:])
    types = [*carried]
    stacked = walked.types[len(carried) + 1 :]
    is_bound = False
    if stacked:
        count = _num_iterations(walk, trip_count, condition, walked)
        if count is None:
            count, is_bound = _most_iterations(walk, trip_count), True
        if count is None:
            raise UnsupportedModelError(
                name,
                "how often its body runs is not known before the run, "
                f"and the shape of its output {node.output[-1]!r} depends on that",
            )
        types += [_with_axis(tensor_type, 0, count) for tensor_type in stacked]
    return [opaque_step(walk, node, name, scope, types, (walked,), is_bound=is_bound)]


def walk_scan(walk: Walk, node: onnx.NodeProto, name: str, scope: Scope) -> list[Step]:
    """Return the step that stands for a Scan.

    Raises:
        ModelFormatError: The node and its body do not fit together.
        UnsupportedModelError: It is of operator set 8, or a state changes its type.
    """
    if walk.dialect.opsets.get("", 0) < _FIRST_SCAN_WITHOUT_BATCH:
        raise UnsupportedModelError(
            name,
            "Scan of operator set 8 is not supported; convert the model to 9 or later",
        )
    operands = walk.operands(node, scope)
    body = subgraph(node, name, "body")
    num_scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
    num_states = len(operands) - num_scanned
    require(name, 0 < num_scanned <= len(operands), "number of scanned inputs")
    require(name, len(body.input) == len(operands), "number of inputs")
    require(name, len(body.output) >= num_states, "number of outputs")
    states = _types(name, operands[:num_states])
    scanned = _types(name, operands[num_states:])
    slices: list[TensorType] = []
    lengths: set[int] = set()
    for (dtype, shape), axis in zip(
        scanned, _axes(node, name, "scan_input_axes", num_scanned), strict=True
    ):
        require(name, -len(shape) <= axis < len(shape), "axis of a scanned input")
        lengths.add(shape[axis])
        axis %= len(shape)
        slices.append(TensorType(dtype, shape[:axis] + shape[axis + 1 :]))
    require(name, len(lengths) == 1, "length of the scanned inputs")
    inner = Scope(scope)
    inputs = define_inputs(walk, body, inner, [*states, *slices])
    walked = walk_body(walk, body, inner, inputs)
    _check_carried(name, states, walked.types)
    stacked = walked.types[num_states:]
    axes = _axes(node, name, "scan_output_axes", len(stacked))
    types = [*states]
    for tensor_type, axis in zip(stacked, axes, strict=True):
        rank = len(tensor_type.shape) + 1
        require(name, -rank <= axis < rank, "axis of a scanned output")
        types.append(_with_axis(tensor_type, axis % rank, min(lengths)))
    return [opaque_step(walk, node, name, scope, types, (walked,))]


def _types(name: str, operands: Sequence[Operand]) -> list[TensorType]:
    types = [operand.type for operand in operands if operand.type is not None]
    require(name, len(types) == len(operands), "number of inputs")
    return types


def _axes(node: onnx.NodeProto, name: str, key: str, count: int) -> list[int]:
    axes = next((list(a.ints) for a in node.attribute if a.name == key), [0] * count)
    require(name, len(axes) == count, f"length of {key}")
    return axes


def _with_axis(tensor_type: TensorType, axis: int, length: int) -> TensorType:
    dtype, shape = tensor_type
    return TensorType(dtype, (*shape[:axis], length, *shape[axis:]))


def _check_carried(name: str, before: Sequence[TensorType], after: Sequence[TensorType]) -> None:
    """Refuse a body that returns a carried value with another type than it received."""
    for number, (given, made) in enumerate(zip(before, after, strict=False)):
        if given != made:
            raise UnsupportedModelError(
                name,
                f"the value it carries at position {number} is {given} before an iteration "
                f"and {made} after it",
            )


def _most_iterations(walk: Walk, trip_count: Operand) -> int | None:
    """Return how often the body of a Loop runs at most, None if it may run for ever."""
    count = walk.values.get(trip_count.name)
    return None if count is None else max(0, int(count.item()))


def _num_iterations(walk: Walk, trip_count: Operand, condition: Operand, body: Body) -> int | None:
    """Return how often the body of a Loop runs, None if that is known only at run time."""
    limit = _most_iterations(walk, trip_count)
    if condition.type is None:
        return limit
    first, later = walk.values.get(condition.name), walk.values.get(body.outputs[0])
    if first is not None and not first.all():
        return 0
    if first is None or later is None:
        return None
    if not later.all():
        return 1 if trip_count.type is None else limit and 1
    return limit

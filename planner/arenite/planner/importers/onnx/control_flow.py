"""If, Loop and Scan.

An If whose condition is known becomes the branch that it takes. Any other operator with subgraphs
is one step: their memory is planned by itself and reserved as one block of scratch.
"""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice

import numpy as np
import onnx

from arenite.planner.errors import ModelFormatError, SizeError, UnsupportedModelError
from arenite.planner.importers.onnx.call import text
from arenite.planner.importers.onnx.loop_counts import counted_iterations
from arenite.planner.importers.onnx.node import Operand, Origin, attributes
from arenite.planner.importers.onnx.operators import onnx_operator
from arenite.planner.importers.onnx.order import captures, live_steps, without_dead_nodes
from arenite.planner.importers.onnx.types import TensorType
from arenite.planner.importers.onnx.walk import Scope, Walk
from arenite.planner.placement.problem import Problem
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import Boundary
from arenite.planner.rewrites.noops import drop_noops
from arenite.planner.tensors import DType, Tensor, TensorKind


def height_of(
    steps: Sequence[Step],
    types: Mapping[str, TensorType],
    constants: Set[str],
    *,
    kept: Iterable[str],
    outputs: Sequence[str],
    boundary: Boundary,
) -> int:
    """Return the bytes for the results of a subgraph's steps, each tensor while it lives.

    The steps keep their order and their tensors share nothing, whatever the rest of the model
    may share, so that the bytes suffice by any rules. Subgraphs inside count as scratch.

    Args:
        constants: Tensors without a place: constants, and tensors outside the subgraph.
        kept: Tensors that live throughout: a body is given them, and is given them again.
        outputs: Tensors that the subgraph returns.
        boundary: Whether the outputs are counted.
    """
    kinds = dict.fromkeys(outputs, TensorKind.OUTPUT)
    kinds.update(dict.fromkeys(kept, TensorKind.STATE))
    kinds.update(dict.fromkeys(constants, TensorKind.CONSTANT))
    used = [name for step in steps for name in (*step.reads, *step.writes)]
    names = dict.fromkeys((*kept, *used, *outputs))
    tensors = [
        Tensor(name, *types[name], kinds.get(name, TensorKind.ACTIVATION)) for name in names
    ]
    program = drop_noops(Program.of("subgraph", tensors, steps, (), dict.fromkeys(outputs)))
    return _placed_height(liveness(program, boundary=boundary))


def _placed_height(problem: Problem) -> int:
    """Return the height of a placement: the largest record first, each as low as it can lie.

    The planner imports no strategy, and this height has to suffice, not to be the least.

    Cost: O(n^2) for n records.
    """
    records = sorted(problem.records, key=lambda record: (-record.size, record.start))
    placed: list[tuple[int, int, int, int]] = []
    for record in records:
        offset = 0
        for low, high, start, end in placed:
            if start < record.end and record.start < end and low < offset + record.size:
                offset = max(offset, high)
        insort(placed, (offset, offset + record.size, record.start, record.end))
    return max((high for _, high, _, _ in placed), default=0)


@dataclass(frozen=True, slots=True)
class Body:
    """The interface of a subgraph, and the bytes it needs.

    Attributes:
        outputs: Names of the tensors it returns.
        reserve: Bytes of its inputs and results while it runs, nested subgraphs included.
    """

    outputs: tuple[str, ...]
    types: tuple[TensorType, ...]
    reserve: int


def subgraph(node: onnx.NodeProto, name: str, key: str) -> onnx.GraphProto:
    graph = onnx.AttributeProto.GRAPH
    found = next((a.g for a in node.attribute if a.name == key and a.type == graph), None)
    if found is None:
        raise ModelFormatError(f"operator {name!r} has no attribute {key!r}")
    return found


def require(name: str, fits: bool, what: str) -> None:
    """Raise unless an operator's subgraph or attributes fit the operator.

    Raises:
        ModelFormatError: `fits` is false.
    """
    if not fits:
        raise ModelFormatError(f"operator {name!r} and its subgraph differ in the {what}")


def define_inputs(
    walk: Walk, graph: onnx.GraphProto, scope: Scope, types: Sequence[TensorType]
) -> list[str]:
    """Return the flat names of a subgraph's inputs, one for each of `types`."""
    return [
        walk.define(scope, value.name, tensor_type)
        for value, tensor_type in zip(graph.input, types, strict=True)
    ]


def walk_body(
    walk: Walk,
    graph: onnx.GraphProto,
    scope: Scope,
    inputs: Sequence[str] = (),
    *,
    outputs_elsewhere: bool = False,
) -> Body:
    """Return the interface of a subgraph, and the bytes it needs.

    Args:
        scope: The subgraph's own scope, with its inputs defined.
        inputs: Flat names of the subgraph's inputs, whose places take the values of the next
            iteration.
        outputs_elsewhere: Whether its outputs are written where those of the operator lie.
    """
    num_outer, dimensions = len(walk.types), walk.dimensions
    steps = walk.walk_graph(graph, scope)
    if walk.dimensions != dimensions:
        raise SizeError(
            f"the size of {walk.dimensions[-1].counted_by!r} depends on data, which is "
            "unsupported inside subgraphs that stay"
        )
    outputs = [walk.find(scope, output.name) for output in graph.output]
    steps = live_steps(steps, outputs)
    own = {*inputs, *islice(walk.types, num_outer, None)}
    outer = {name for step in steps for name in step.reads if name not in own}
    outer.update(name for name in outputs if name not in own)
    return Body(
        outputs=tuple(outputs),
        types=tuple(walk.types[name] for name in outputs),
        reserve=height_of(
            steps,
            walk.types,
            outer | walk.constants,
            kept=inputs,
            outputs=outputs,
            boundary=Boundary.EXCLUDE if outputs_elsewhere else Boundary.INCLUDE,
        ),
    )


def opaque_step(
    walk: Walk,
    node: onnx.NodeProto,
    name: str,
    scope: Scope,
    types: Sequence[TensorType],
    bodies: Sequence[Body],
    *,
    is_bound: bool = False,
) -> Step:
    """Return the step that stands for `bodies`, one of which runs.

    It reads the inputs of the node, then those that its subgraphs capture.

    Args:
        scope: Scope in which to define its outputs.
        bodies: The subgraphs that may run.
        is_bound: Whether the types are the largest that the outputs can have.
    """
    node = without_dead_nodes(node)
    captured = captures(node)
    if walk.ranged is not None:
        used = [*node.input, *captured]
        found = [walk.find(scope, local) for local in used if local]
        made = (output for body in bodies for output in body.outputs)
        walk.ranged.refuse(f"operator {name!r} ({node.op_type})", (*found, *made), walk.types)
    reads = [walk.find(scope, local) if local else "" for local in (*node.input, *captured)]
    outputs = [
        walk.define(scope, local, tensor_type) if local else ""
        for local, tensor_type in zip(node.output, types, strict=False)
    ]
    made_inside = (name for body in bodies for name in body.outputs)
    is_bound = is_bound or not walk.bounded.isdisjoint((*reads, *made_inside))
    if is_bound:
        walk.bounded.update(filter(None, outputs))
    operator = onnx_operator(
        node.op_type,
        attributes(node),
        reserve=max(body.reserve for body in bodies),
        origin=Origin(node, walk.dialect, captured),
        is_bound=is_bound,
    )
    return Step(name, operator, tuple(reads), tuple(outputs))


def walk_if(walk: Walk, node: onnx.NodeProto, name: str, scope: Scope) -> list[Step]:
    """Return the steps that stand for an If.

    Raises:
        ModelFormatError: The node and its branches do not fit together.
        UnsupportedModelError: The branches make different types, and either may run.
    """
    operands = walk.operands(node, scope)
    require(name, len(operands) == 1, "condition")
    condition = operands[0].name
    branches = [subgraph(node, name, key) for key in ("then_branch", "else_branch")]
    for branch in branches:
        require(name, len(branch.output) == len(node.output), "number of outputs")
    if walk.ranged is not None:
        walk.ranged.require_decided(condition, name)
    value = walk.values.get(condition)
    if value is not None:
        require(name, value.size == 1, "condition")
        return _inline(walk, node, name, branches[0 if value.item() else 1], scope)
    if walk.ranged is not None and condition in walk.ranged.zeros:
        return _unless_empty(walk, node, name, branches, scope, walk.ranged.zeros[condition])
    on_true, on_false = (_either(walk, branch, name, scope) for branch in branches)
    for local, one, other in zip(node.output, on_true.types, on_false.types, strict=True):
        if local and one != other:
            raise UnsupportedModelError(
                name,
                f"output {local!r} is {one} in one branch and {other} in the other, and the "
                "condition is unknown before the run",
            )
    return [opaque_step(walk, node, name, scope, on_true.types, (on_true, on_false))]


def _unless_empty(
    walk: Walk,
    node: onnx.NodeProto,
    name: str,
    branches: Sequence[onnx.GraphProto],
    scope: Scope,
    zero: int,
) -> list[Step]:
    """Return the steps of the second branch, where the first stands for its empty results.

    Exporters write such an If around the selection of boxes: nothing is selected of no boxes, as
    the steps find themselves.

    Args:
        zero: The size that is 0 where the first branch is taken.

    Raises:
        SizeError: The branches differ where that size is 0.
    """
    assert walk.ranged is not None
    on_true = walk_body(walk, branches[0], Scope(scope), outputs_elsewhere=True)
    steps = _inline(walk, node, name, branches[1], scope)
    for local, one in zip(node.output, on_true.types, strict=True):
        other = walk.types[walk.find(scope, local)] if local else one
        is_empty = 0 in one.shape and any(walk.ranged.vanishes(n, zero) for n in other.shape)
        if local and (one.dtype is not other.dtype or not is_empty):
            raise SizeError(
                f"operator {name!r} (If): the branch that is taken depends on the sizes, and "
                f"{local!r} is not empty in both where {text(zero)} is 0"
            )
    return steps


def _either(walk: Walk, branch: onnx.GraphProto, name: str, scope: Scope) -> Body:
    """Return one of the branches of which either may run."""
    try:
        return walk_body(walk, branch, Scope(scope), outputs_elsewhere=True)
    except (ModelFormatError, UnsupportedModelError) as error:
        raise UnsupportedModelError(
            name,
            f"the condition is unknown before the run, and one branch is unsupported: "
            f"{error.reason}; fix an input that decides it with --value INPUT=NUMBER",
        ) from error


def _inline(
    walk: Walk, node: onnx.NodeProto, name: str, branch: onnx.GraphProto, scope: Scope
) -> list[Step]:
    """Return the steps of the branch taken, which write the outputs of the If."""
    made = {output for inner in branch.node for output in inner.output}
    wanted: dict[str, str] = {}
    copied: list[tuple[str, str]] = []
    for local, output in zip(node.output, (o.name for o in branch.output), strict=True):
        if not local:
            continue
        if output in made and output not in wanted:
            wanted[output] = walk.flat_name(scope, local)
            scope.define(local, wanted[output])
        else:
            copied.append((output, local))
    inner = Scope(scope, wanted)
    steps = walk.walk_graph(branch, inner)
    for output, local in copied:
        copy = onnx.NodeProto(op_type="Identity", input=[output], output=[local])
        label = walk.operator_names.take(f"{name}/copy")
        operands = walk.operands(copy, inner)
        steps += walk.walk_operator(copy, label, operands, scope)
    return steps


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
        most = _most_iterations(walk, trip_count)
        count = _num_iterations(walk, trip_count, condition, walked)
        if count is None and walk.values.get(condition.name) is not None:
            count = counted_iterations(walk, body, inner, operands[2:], most)
        if count is None:
            count, is_bound = most, True
        if count is None:
            raise UnsupportedModelError(
                name,
                "the number of iterations is unknown before the run, and the shape of output "
                f"{node.output[-1]!r} depends on it",
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
            "Scan of operator set 8 is unsupported; convert the model to operator set 9 or later",
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
                name, f"carried value {number} is {given} before an iteration and {made} after it"
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

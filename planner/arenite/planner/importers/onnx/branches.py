"""If: the branch taken if the condition is known, else one step that reserves for the larger."""

import onnx

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.importers.onnx.body import Body, opaque_step, require, subgraph, walk_body
from arenite.planner.importers.onnx.scope import Scope
from arenite.planner.importers.onnx.walk import Walk
from arenite.planner.program import Step


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
    value = walk.values.get(condition)
    if value is not None:
        require(name, value.size == 1, "condition")
        return _inline(walk, node, name, branches[0 if value.item() else 1], scope)
    on_true, on_false = (_either(walk, branch, name, scope) for branch in branches)
    for local, one, other in zip(node.output, on_true.types, on_false.types, strict=True):
        if local and one != other:
            raise UnsupportedModelError(
                name,
                f"its output {local!r} is {one} in one branch and {other} in the other, "
                "and which one runs is not known before the run",
            )
    return [opaque_step(walk, node, name, scope, on_true.types, (on_true, on_false))]


def _either(walk: Walk, branch: onnx.GraphProto, name: str, scope: Scope) -> Body:
    """Return one of the branches of which either may run."""
    try:
        return walk_body(walk, branch, Scope(scope), outputs_elsewhere=True)
    except (ModelFormatError, UnsupportedModelError) as error:
        raise UnsupportedModelError(
            name,
            f"which of its branches runs is not known before the run, and one cannot: "
            f"{error.reason}; an input that decides can be fixed with --value INPUT=NUMBER",
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

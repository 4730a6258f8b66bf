"""Steps that change nothing cost no memory: their output lies in their input."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from arenite.planner.programs.program import Program
from arenite.planner.tensors import Alias, Tensor, TensorKind


def drop_noops(program: Program) -> Program:
    """Return the program with the outputs of steps that change nothing lying in their inputs.

    The steps themselves stay. A copy that the run needs remains: of a constant to an output of
    the program, to or from a state, and from a storage that another step also writes.

    Cost: O(tensors + operands of the steps).
    """
    num_writers = _num_writers(program)
    tensors = dict(program.tensors)
    for step in program.steps:
        if step.operator.changes_nothing(program.operands(step)):
            source, target = tensors[step.inputs[0]], tensors[step.outputs[0]]
            root = _root(tensors, source)
            overwritten = max(num_writers[root.name], num_writers[target.name]) > 1
            if not overwritten and _may_share(root, target):
                tensors[target.name] = replace(target, alias=Alias(source.name))
    return replace(program, tensors=tensors)


def _num_writers(program: Program) -> Counter[str]:
    """Return the number of writers of each storage, including the caller."""
    written = (name for step in program.steps for name in step.writes)
    return Counter(program.root(name)[0] for name in (*program.input_tensors, *written))


def _root(tensors: Mapping[str, Tensor], tensor: Tensor) -> Tensor:
    while tensor.alias is not None:
        tensor = tensors[tensor.alias.tensor]
    return tensor


def _may_share(root: Tensor, target: Tensor) -> bool:
    if target.alias is not None or TensorKind.STATE in (root.kind, target.kind):
        return False
    return not (root.kind is TensorKind.CONSTANT and target.kind is TensorKind.OUTPUT)

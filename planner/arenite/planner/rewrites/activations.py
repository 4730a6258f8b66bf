"""Fuse an activation into the step that feeds it, which removes the tensor between them."""

from collections import Counter
from dataclasses import replace

from arenite.planner.operators.imported import Imported
from arenite.planner.programs.program import Program, Step
from arenite.planner.tensors import TensorKind


def fuse_activations(program: Program) -> Program:
    """Return `program` with each clamp fused into the only step that feeds it.

    The step keeps its name, operator and place and writes what the clamp wrote. Its operator
    gains the attributes `activation`, the clamp's type; `activation_inputs`, the names of the
    constant bounds if they are tensors; and the clamp's own attributes, each prefixed with
    `activation_`. Only for imported operators: our own have fields for bounds.

    A clamp stays where its bounds are not constants, where its input is read by others,
    is an output of the program or shares storage, or where its producer already has a clamp.

    Cost: O(tensors + operands of the steps).
    """
    producers = {name: step for step in program.steps for name in step.writes}
    num_readers = Counter(name for step in program.steps for name in step.reads)
    shared = _sharing_storage(program)
    clamps: dict[str, Step] = {}
    for step in program.steps:
        if not _is_clamp(program, step):
            continue
        between = step.inputs[0]
        producer = producers.get(between)
        if (
            producer is not None
            and producer.operator.takes_clamp
            and isinstance(producer.operator, Imported)
            and "activation" not in producer.operator.attributes
            and num_readers[between] == 1
            and program.tensors[between].kind is TensorKind.ACTIVATION
            and between not in program.output_tensors
            and shared.isdisjoint((between, step.outputs[0]))
        ):
            clamps[producer.name] = step
    return _without(program, clamps)


def _is_clamp(program: Program, step: Step) -> bool:
    return step.operator.is_clamp and all(
        program.tensors[name].kind is TensorKind.CONSTANT for name in step.inputs[1:] if name
    )


def _sharing_storage(program: Program) -> set[str]:
    """Return the tensors that lie in another, and those in which another lies."""
    sharing: set[str] = set()
    for tensor in program.tensors.values():
        if tensor.alias is not None:
            sharing.update((tensor.name, tensor.alias.tensor))
    return sharing


def _without(program: Program, clamps: dict[str, Step]) -> Program:
    """Return `program` with each clamp fused into the step that it is listed under."""
    gone = {clamp.name for clamp in clamps.values()}
    between = {clamp.inputs[0] for clamp in clamps.values()}
    steps = tuple(
        _fused(step, clamps[step.name]) if step.name in clamps else step
        for step in program.steps
        if step.name not in gone
    )
    tensors = {name: tensor for name, tensor in program.tensors.items() if name not in between}
    return replace(program, tensors=tensors, steps=steps)


def _fused(step: Step, clamp: Step) -> Step:
    operator, activation = step.operator, clamp.operator
    assert isinstance(operator, Imported)
    assert isinstance(activation, Imported)
    attributes = dict(operator.attributes)
    attributes["activation"] = activation.op_type
    if clamp.inputs[1:]:
        attributes["activation_inputs"] = clamp.inputs[1:]
    for name, value in activation.attributes.items():
        attributes[f"activation_{name}"] = value
    return replace(step, operator=replace(operator, attributes=attributes), outputs=clamp.outputs)

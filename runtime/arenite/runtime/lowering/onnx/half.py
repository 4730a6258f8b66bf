"""Models of 16-bit floats as models of 32-bit floats, which the kernels compute."""

from dataclasses import replace

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.operators import Imported
from arenite.planner.programs import Names
from arenite.runtime.lowering.onnx.quantisation import MOVES, constants_of

_STORING = MOVES | {"Cast", "Concat", "Gather", "Identity", "Pad"}
"""Operators that have kernels for 16-bit floats, as they compute nothing."""


def with_wide_floats(model: Program) -> Program:
    """Return a model that computes with 32-bit floats where it is stated with 16-bit floats.

    Inputs and outputs keep their types: steps convert them. Results in between are not rounded to
    16 bits. Models that only store such floats, or have states or subgraphs of them, stay as they
    are, and so do those with operators that state a type by an attribute.
    """
    narrow = {name for name, each in model.tensors.items() if each.dtype is DType.FLOAT16}
    touching = [step for step in model.steps if narrow.intersection((*step.reads, *step.writes))]
    if all(step.operator.label in _STORING for step in touching):
        return model
    if any(model.tensors[name].kind is TensorKind.STATE for name in narrow):
        return model
    if any(_states_type(step) for step in touching):
        return model
    names = Names([*model.tensors, *(step.name for step in model.steps)])
    boundary = [name for name in (*model.input_tensors, *model.output_tensors) if name in narrow]
    inside = {name: names.take(f"{name}/wide") for name in dict.fromkeys(boundary)}
    tensors = {
        name: replace(tensor, dtype=DType.FLOAT32) if name in narrow - inside.keys() else tensor
        for name, tensor in model.tensors.items()
    }
    for name, wide in inside.items():
        shape = model.tensors[name].shape
        tensors[wide] = Tensor(wide, DType.FLOAT32, shape, TensorKind.ACTIVATION)

    def renamed(operands: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(inside.get(name, name) for name in operands)

    def cast(source: str, target: str) -> Step:
        return Step(names.take(f"{target}/cast"), Imported("Cast"), (source,), (target,))

    inputs = dict.fromkeys(model.input_tensors)
    steps = [cast(name, wide) for name, wide in inside.items() if name in inputs]
    steps += [
        replace(step, inputs=renamed(step.inputs), outputs=renamed(step.outputs))
        for step in model.steps
    ]
    steps += [cast(wide, name) for name, wide in inside.items() if name not in inputs]
    constants = constants_of(model).widened()
    return replace(model, tensors=tensors, steps=tuple(steps), constants=constants)


def _states_type(step: Step) -> bool:
    if not isinstance(step.operator, Imported) or step.operator.label == "Cast":
        return False
    return any(name in step.operator.attributes for name in ("dtype", "to", "value", "body"))

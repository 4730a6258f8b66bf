"""Weights in blocks as floats, which the C kernels multiply by."""

from dataclasses import replace

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.programs import Names
from arenite.runtime.lowering.blocks import weights_of
from arenite.runtime.operators.blocks import BlockGather, BlockProduct
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import Gather
from arenite.runtime.rewrites.fusing import without_unread


def with_floats_for_blocks(program: Program) -> Program:
    """Return the program with floats for weights in blocks, a constant of each once."""
    tensors, constants = dict(program.tensors), dict(program.constants)
    names = Names(tensors)
    made: dict[str, str] = {}

    def weights(step: Step, bits: int, outputs: int, inputs: int) -> str:
        source = step.inputs[1]
        if source not in made:
            zeros = constants[step.inputs[3]] if step.inputs[3:] and step.inputs[3] else None
            packed = constants[source], constants[step.inputs[2]], zeros
            array = weights_of(packed, bits, outputs, inputs)
            made[source] = name = names.take(f"{source}/floats")
            constants[name] = array
            tensors[name] = Tensor(name, DType.FLOAT32, array.shape, TensorKind.CONSTANT)
        return made[source]

    def changed(step: Step) -> Step:
        if not isinstance(step.operator, BlockProduct | BlockGather):
            return step
        width = tensors[step.outputs[0]].shape[-1]
        if isinstance(step.operator, BlockProduct):
            floats = weights(step, step.operator.bits, width, tensors[step.inputs[0]].shape[-1])
            inputs = (step.inputs[0], floats, *step.inputs[4:])
            return replace(step, operator=FullyConnected(), inputs=inputs)
        floats = weights(step, step.operator.bits, step.operator.rows, width)
        return replace(step, operator=Gather(axis=0), inputs=(floats, step.inputs[0]))

    steps = tuple(map(changed, program.steps))
    if steps == program.steps:
        return program
    return without_unread(replace(program, tensors=tensors, constants=constants, steps=steps))

"""Weights that a run brings into the arena, each layer's into a window just before it is used.

The window of a layer is an ordinary tensor that the planner places. A step `LoadWeights` begins to
fill it, and the layer reads it in the place of its filter.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from arenite.planner import DType, Program, Step, TensorKind
from arenite.planner.programs import Names
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import LoadWeights
from arenite.runtime.rewrites import WeightBudget, WeightBudgetError, weight_bytes

_FEWEST = 64
"""Fewest bytes of weights that are worth a call."""
_BLOCK = 4
"""Outputs in a block of a filter: the kernels' order has as many bytes as the model's if the
outputs of a group are a multiple of it."""


@dataclass(frozen=True, slots=True)
class Windowed:
    """A layer whose weights may have a window.

    Attributes:
        step: Its step.
        size: Bytes of its weights.
        live: Bytes of its operand, its result and the window.
    """

    step: Step
    size: int
    live: int


def windowed(program: Program) -> list[Windowed]:
    """Return the layers whose weights may have windows: those that take the least arena first."""
    uses = Counter(program.root(name)[0] for step in program.steps for name in step.reads)
    found = []
    for step in program.steps:
        if type(step.operator) not in (Conv2D, DepthwiseConv2D, FullyConnected):
            continue
        source, weights, result = (
            program.tensors[name] for name in (*step.inputs[:2], step.outputs[0])
        )
        array = program.constants.get(weights.name)
        if array is None or uses[weights.name] > 1 or array.nbytes < _FEWEST:
            continue
        if {source.dtype, weights.dtype, result.dtype} != {DType.INT8}:
            continue
        groups = step.operator.groups if isinstance(step.operator, Conv2D) else 1
        if result.shape[-1] % (groups * _BLOCK):
            continue
        live = source.size + result.size + weights.size
        found.append(Windowed(step, array.nbytes, live))
    return sorted(found, key=lambda each: each.live)


def fetch_weights(program: Program, budget: WeightBudget) -> Program:
    """Return the program with enough windows that the other weights are within a budget.

    Raises:
        WeightBudgetError: Too few of its layers may have windows.
    """
    most, resident = budget.bytes_of(program), weight_bytes(program)
    chosen = list[Windowed]()
    for layer in windowed(program):
        if resident <= most:
            break
        resident -= layer.size
        chosen.append(layer)
    if resident > most:
        raise WeightBudgetError(most, resident)
    fetched = []
    for layer in reversed(chosen):  # others than the last one may no longer be needed
        if resident + layer.size <= most:
            resident += layer.size
        else:
            fetched.append(layer.step.name)
    return with_windows(program, fetched)


def with_windows(program: Program, layers: Iterable[str]) -> Program:
    """Return the program with windows for the weights of some layers, by names of steps."""
    chosen = frozenset(layers)
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    tensors, steps = dict(program.tensors), list[Step]()
    for step in program.steps:
        if step.name in chosen:
            stated = tensors[step.inputs[1]]
            window = names.take(f"{step.name}/window")
            tensors[window] = replace(stated, name=window, kind=TensorKind.ACTIVATION)
            load = names.take(f"{step.name}/load")
            steps.append(Step(load, LoadWeights(), (stated.name,), (window,)))
            step = replace(step, inputs=(step.inputs[0], window, *step.inputs[2:]))
        steps.append(step)
    return replace(program, tensors=tensors, steps=tuple(steps))

"""Store filters in the order that the kernels of convolutions and products read them in.

The output channels of a filter are cut into panels, and those of a panel lie side by side, input
by input. The last panel of a group is filled up with zeros. The order is the same for every
processor, so nothing is packed when a program is loaded, and weights can be mapped, streamed and
decoded as they are.
"""

from dataclasses import replace

import numpy as np

from arenite.planner.names import Names
from arenite.planner.program import Array, Program, Step
from arenite.planner.tensors import Tensor, TensorKind
from arenite.runtime.operators.convolution import PANEL, Conv2D, FullyConnected
from arenite.runtime.rewrites.unread import without_unread


def pack_filters(program: Program) -> Program:
    """Return the program with the floating-point filters of Conv2D and FullyConnected packed.

    A filter that other steps read too is stored for these as it is.
    """
    names = Names([*program.tensors, *(step.name for step in program.steps)])
    tensors, constants = dict(program.tensors), dict(program.constants)
    packed: dict[tuple[str, int], str] = {}
    steps = []
    for step in program.steps:
        weights = _filter(program, step)
        if weights is None:
            steps.append(step)
            continue
        groups = step.operator.groups if isinstance(step.operator, Conv2D) else 1
        source = step.inputs[1]
        key = source, groups
        if key not in packed:
            packed[key] = names.take(f"{source}/packed")
            array = packed_filter(weights, groups)
            constants[packed[key]] = array
            tensors[packed[key]] = Tensor(
                packed[key], tensors[source].dtype, array.shape, TensorKind.CONSTANT
            )
        steps.append(replace(step, inputs=(step.inputs[0], packed[key], *step.inputs[2:])))
    return without_unread(
        replace(program, tensors=tensors, steps=tuple(steps), constants=constants)
    )


def packed_filter(weights: Array, groups: int = 1) -> Array:
    """Return a filter in panels.

    Args:
        weights: Float32 of shape outputs, ..., inputs / groups.
        groups: Outputs come in as many groups; none shares a panel with another.

    Returns:
        Shape panels, ..., inputs / groups, PANEL.
    """
    outputs, *inner = weights.shape
    per_group = outputs // groups
    filled = -(-per_group // PANEL) * PANEL
    by_group = weights.reshape(groups, per_group, *inner)
    margins = [(0, 0), (0, filled - per_group), *((0, 0) for _ in inner)]
    panels = np.pad(by_group, margins).reshape(-1, PANEL, *inner)
    return np.ascontiguousarray(np.moveaxis(panels, 1, -1))


def _filter(program: Program, step: Step) -> Array | None:
    """Return the filter of a step if it can be packed."""
    if not isinstance(step.operator, Conv2D | FullyConnected):
        return None
    weights = program.constants.get(step.inputs[1])
    if weights is None or weights.dtype != np.float32 or not weights.size:
        return None
    return weights

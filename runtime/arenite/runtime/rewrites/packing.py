"""Store weights in the order that the kernels of convolutions, products and recurrent layers read.

The output channels of a filter are cut into panels, and those of a panel lie side by side, input
by input. The last panel of a group is filled up with zeros. The order is the same for every
processor, so nothing is packed when a program is loaded, and weights can be mapped, streamed and
decoded as they are.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from arenite.planner import Array, DType, Program, Quantisation, Step, Tensor, TensorKind
from arenite.planner.programs import Names
from arenite.runtime.operators.base import PANEL
from arenite.runtime.operators.convolution import Conv2D, Convolution, DepthwiseConv2D
from arenite.runtime.operators.recurrent import DynamicLstm, Gru, Lstm, Rnn
from arenite.runtime.rewrites.fusing import without_unread

_QUAD = 4
"""Inputs of an integer filter that lie side by side: as many as one dot product takes."""


def pack_filters(program: Program) -> Program:
    """Return the program with the weights of convolutions, products and recurrent layers packed.

    A filter that other steps read too is stored for these as it is. Integers are packed where
    source and result have one scale; the step then reads the scales of its sums as well.
    """
    packer = _Packer(program)
    steps = tuple(map(packer.packed, program.steps))
    return without_unread(
        replace(program, tensors=packer.tensors, steps=steps, constants=packer.constants)
    )


class _Packer:
    """Packs the filters of one step after the other.

    Attributes:
        tensors: Tensors of the program, and of the packed filters.
        constants: Constants of the program, and the packed filters.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = Names([*program.tensors, *(step.name for step in program.steps)])
        self._packed: dict[tuple[str, str, int], str] = {}
        self.tensors = dict(program.tensors)
        self.constants = dict(program.constants)

    def packed(self, step: Step) -> Step:
        """Return the step with its filter packed, if it can be."""
        if isinstance(step.operator, Lstm | Gru | Rnn):
            return self._with_gates(step, step.operator)
        if isinstance(step.operator, DynamicLstm):
            return self._with_gates_of_integers(step)
        if not isinstance(step.operator, Convolution):
            return step
        weights = self._program.constants.get(step.inputs[1])
        if weights is None or not weights.size:
            return step
        if _groups(step) < 1 or weights.shape[0] % _groups(step):
            return step  # that it does not fit is for the core to say
        plain = step
        num_channels = self.tensors[step.inputs[0]].shape[-1]
        if isinstance(step.operator, DepthwiseConv2D) and num_channels == 1:
            step, weights = _of_one_channel(step, step.operator, weights)
        if weights.dtype != np.float32:
            return self._with_integers(step, weights) or plain
        if isinstance(step.operator, DepthwiseConv2D):
            return step
        packed = partial(packed_filter, weights, _groups(step))
        name = self._constant(step.inputs[1], step, packed)
        return replace(step, inputs=(step.inputs[0], name, *step.inputs[2:]))

    def _with_gates(self, step: Step, operator: Lstm | Gru | Rnn) -> Step:
        """Return a recurrent layer with its weights and biases packed, those of integers as is."""
        last = 5 if isinstance(operator, Gru) else 4
        weights = [self._program.constants.get(name) for name in step.inputs[1:last]]
        arrays = [each for each in weights if each is not None and each.dtype == np.float32]
        if len(arrays) < len(weights):
            return step
        if isinstance(operator, Gru):
            arrays[2:] = gru_biases(operator, *arrays[2:])
        names = [
            self._constant(name, step, partial(packed_gates, array, operator.num_gates))
            for name, array in zip(step.inputs[1:3], arrays, strict=False)
        ]
        # Biases depend on more than their names.
        names.append(
            self._new(f"{step.inputs[3]}/packed", packed_gates(arrays[2], operator.num_gates))
        )
        names += [
            self._new(f"{step.inputs[4]}/packed", packed_gates(each, 1)) for each in arrays[3:]
        ]
        return replace(step, inputs=(step.inputs[0], *names, *step.inputs[last:]))

    def _with_gates_of_integers(self, step: Step) -> Step:
        """Return a dynamically quantised LSTM with all its constants packed."""
        names = list(step.inputs)
        for position in (1, 2, 3, *range(8, len(names))):
            if not names[position]:
                continue
            array = packed_gates(self._program.constants[names[position]], DynamicLstm.num_gates)
            if position < 3:
                rows = np.moveaxis(array, 2, -1)
                array = packed_integer_filter(rows.reshape(-1, rows.shape[-1]))
            names[position] = self._new(f"{names[position]}/packed", array)
        return replace(step, inputs=tuple(names))

    def _with_integers(self, step: Step, weights: Array) -> Step | None:
        """Return the step with a packed filter of integers, None if it cannot have one."""
        operator, filter_name = step.operator, step.inputs[1]
        source, result = (self.tensors[name] for name in (step.inputs[0], step.outputs[0]))
        stated = self.tensors[filter_name].quantisation
        makes_sums = result.dtype in (DType.FLOAT32, DType.INT32)
        scales = np.ones(1, np.float32) if makes_sums else _product_scales(source, stated, result)
        bias = step.inputs[2] if len(step.inputs) > 2 else ""
        if makes_sums:
            stated = Quantisation((1.0,), 0)
        if scales is None or stated is None or (bias and bias not in self.constants):
            return None
        zero_point = stated.zero_point
        if weights.dtype == np.uint8:
            weights = (weights ^ np.uint8(0x80)).view(np.int8)
            zero_point -= 128
        if isinstance(operator, DepthwiseConv2D):
            outputs = weights.shape[3]
            array = weights
        else:
            outputs = weights.shape[0]
            array = packed_integer_filter(weights, _groups(step))
        if isinstance(operator, Conv2D):
            operator = replace(operator, kernel=(weights.shape[1], weights.shape[2]))
        if bias:  # its scales are those of the sums
            self.tensors[bias] = replace(self.tensors[bias], quantisation=None)
        name = self._constant(filter_name, step, lambda: array, Quantisation((1.0,), zero_point))
        if makes_sums:
            return replace(
                step, operator=operator, inputs=(step.inputs[0], name, *step.inputs[2:])
            )
        factors = np.ascontiguousarray(np.broadcast_to(scales, (outputs,)))
        scales_name = self._new(f"{step.outputs[0]}/scales", factors)
        inputs = (step.inputs[0], name, bias, "", scales_name)
        return Step(step.name, operator, inputs, step.outputs)

    def _constant(
        self,
        weights: str,
        step: Step,
        make: Callable[[], Array],
        quantisation: Quantisation | None = None,
    ) -> str:
        """Return the name of packed weights of a step, made once for all that pack them alike."""
        key = weights, type(step.operator).__name__, _groups(step)
        if key not in self._packed:
            self._packed[key] = self._new(f"{weights}/packed", make(), quantisation)
        return self._packed[key]

    def _new(self, hint: str, array: Array, quantisation: Quantisation | None = None) -> str:
        name = self._names.take(hint)
        self.constants[name] = array
        self.tensors[name] = Tensor(
            name, DType.of_label(array.dtype.name), array.shape, TensorKind.CONSTANT,
            quantisation=quantisation,
        )  # fmt: skip
        return name


def _of_one_channel(step: Step, operator: DepthwiseConv2D, weights: Array) -> tuple[Step, Array]:
    """Return a depthwise convolution of one channel as the convolution that it is."""
    conv = Conv2D(
        min=operator.min, max=operator.max, strides=operator.strides,
        dilations=operator.dilations, padding=operator.padding,
    )  # fmt: skip
    return replace(step, operator=conv), np.moveaxis(weights, 3, 0).reshape(
        weights.shape[3], *weights.shape[1:3], 1
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


def packed_gates(weights: Array, gates: int) -> Array:
    """Return weights or biases of a recurrent layer in tiles of units.

    Args:
        weights: Of shape directions, gates * units, or that and inputs.
        gates: The number of gates.

    Returns:
        Shape directions, tiles, inputs, gates * PANEL; without inputs where there are none.
    """
    directions, rows, *inputs = weights.shape
    units = rows // gates
    tiles = -(-units // PANEL)
    by_gate = weights.reshape(directions, gates, units, *inputs)
    margins = [(0, 0), (0, 0), (0, tiles * PANEL - units), *((0, 0) for _ in inputs)]
    padded = np.pad(by_gate, margins).reshape(directions, gates, tiles, PANEL, *inputs)
    order = (0, 2, *range(4, padded.ndim), 1, 3)
    return np.ascontiguousarray(padded.transpose(order)).reshape(
        directions, tiles, *inputs, gates * PANEL
    )


def gru_biases(operator: Gru, bias: Array, recurrent_bias: Array) -> tuple[Array, Array]:
    """Return a bias of all gates, and one that the reset gate applies to."""
    units = bias.shape[1] // operator.num_gates
    kept = recurrent_bias[:, -units:] if operator.reset_after else np.zeros_like(bias[:, -units:])
    both = bias + recurrent_bias
    both[:, -units:] = bias[:, -units:] if operator.reset_after else both[:, -units:]
    return both, kept


def packed_integer_filter(weights: Array, groups: int = 1) -> Array:
    """Return a filter of integers in panels, each behind the sums of its outputs.

    Args:
        weights: Int8 of shape outputs, ..., inputs / groups.
        groups: Outputs come in as many groups; none shares a panel with another.

    Returns:
        Int8 of shape panels, 1 + quads, 4 * PANEL: the sums of 32 bits, the lowest byte first,
        then quads of four weights of each output. The last quad is filled up with zeros.
    """
    outputs = weights.shape[0]
    per_group, depth = outputs // groups, weights[0].size
    filled = -(-per_group // PANEL) * PANEL
    quads = -(-depth // _QUAD)
    margins = [(0, 0), (0, filled - per_group), (0, quads * _QUAD - depth)]
    padded = np.pad(weights.reshape(groups, per_group, depth), margins)
    panels = padded.reshape(-1, PANEL, quads, _QUAD)
    sums = panels.sum(axis=(2, 3), dtype="<i4").view(np.int8).reshape(-1, 1, _QUAD * PANEL)
    rows = panels.transpose(0, 2, 1, 3).reshape(-1, quads, _QUAD * PANEL)
    return np.concatenate([sums, rows], axis=1)


def _groups(step: Step) -> int:
    return step.operator.groups if isinstance(step.operator, Conv2D) else 1


def _product_scales(source: Tensor, weights: Quantisation | None, result: Tensor) -> Array | None:
    """Return the scales of sums over that of the result, None where these are not of bytes."""
    if source.dtype not in (DType.INT8, DType.UINT8) or source.dtype is not result.dtype:
        return None
    stated = [each.quantisation for each in (source, result)]
    if weights is None or any(each is None or len(each.scales) > 1 for each in stated):
        return None
    of_source, of_result = (np.float32(each.scales[0]) for each in stated if each is not None)
    return np.asarray(of_source * np.asarray(weights.scales, np.float32) / of_result, np.float32)

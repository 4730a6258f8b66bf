"""Steps that CMSIS-NN computes."""

from collections.abc import Mapping

import numpy as np

from arenite.planner import Array, Tensor
from arenite.planner.operators import Operator
from arenite.runtime.cexport import kernels
from arenite.runtime.cexport.base.errors import NotWrittenError
from arenite.runtime.cexport.base.fixed_point import (
    clamp_of,
    quantised_multiplier,
    scale_of,
    zero_of,
)
from arenite.runtime.cexport.base.options import Extension
from arenite.runtime.cexport.steps import tables
from arenite.runtime.cexport.steps.cmsis_nn_operators import ByCmsisNN
from arenite.runtime.cexport.steps.convolution import multipliers, per_output
from arenite.runtime.cexport.steps.elementwise import ADD_SHIFT, addends
from arenite.runtime.cexport.steps.reduction import check_256ths
from arenite.runtime.cexport.steps.writer import StepWriter, Write, writes
from arenite.runtime.operators.base import Clamped
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.operators.elementwise import Binary, BinaryFunction
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.normalisation import Softmax
from arenite.runtime.operators.reduction import Pool2D, PoolKind

_FEATURES = {Extension.DSP: "PLANNED_FOR_DSP", Extension.MVE: "PLANNED_FOR_MVE"}


@writes(ByCmsisNN)
def by_cmsis_nn(t: StepWriter) -> None:
    """Write a step as a call of CMSIS-NN, which may refuse it."""
    operator = t.operator
    assert isinstance(operator, ByCmsisNN)
    if t.file.rounding != "double":
        raise NotWrittenError(
            f"rounding={t.file.rounding} is unsupported by CMSIS-NN, supported: double"
        )
    if operator.extension in _FEATURES:
        t.need(_FEATURES[operator.extension])
    _WRITERS[type(operator.operator)](t.as_step(operator.operator))


def _conv(t: StepWriter) -> None:
    operator = t.operator
    assert isinstance(operator, Conv2D)
    _convolution(t, "conv", _offsets(t), operator, t.array(1))


def _depthwise(t: StepWriter) -> None:
    operator, weights = t.operator, t.array(1)
    assert isinstance(operator, DepthwiseConv2D)
    inputs, outputs = t.input().shape[3], t.output().shape[3]
    if inputs == 1:
        # Of one channel every output reads the same: a convolution, whose kernel is quicker.
        weights = np.moveaxis(weights, 3, 0).reshape(outputs, *weights.shape[1:3], 1)
        _convolution(t, "conv", _offsets(t), operator, weights)
        return
    _convolution(t, "depthwise", (*_offsets(t), str(outputs // inputs)), operator, weights)


def _convolution(
    t: StepWriter,
    kind: str,
    first: tuple[str, ...],
    operator: Conv2D | DepthwiseConv2D,
    weights: Array,
) -> None:
    """Write a convolution of a kind; `first` are the first of its parameters."""
    tiles = (_tile(operator.strides), _tile(operator.padding[::3]), _tile(operator.dilations))
    outputs = t.output().shape[3]
    _call(
        t, f"cmsis_{kind}_s8", f"cmsis_{kind}", t.input(),
        params=_braced(*first, *tiles, _clamp(t)),
        in_dims=_braced(*t.input().shape),
        filter_dims=_braced(*weights.shape),
        out_dims=_braced(*t.output().shape),
        **_weighed(t, weights, outputs, count=outputs),
    )  # fmt: skip


def _fully_connected(t: StepWriter) -> None:
    weights = t.array(1)
    outputs, depth = weights.shape
    rows = t.input().num_elements // depth
    in_zero, out_zero = _offsets(t)
    count = len(multipliers(t)[0])
    _call(
        t, "cmsis_fully_connected_s8", "cmsis_fully_connected", t.input(),
        params=_braced(in_zero, 0, out_zero, _clamp(t)),
        in_dims=_braced(rows, 1, 1, depth),
        filter_dims=_braced(depth, 1, 1, outputs),
        out_dims=_braced(rows, 1, 1, outputs),
        is_per_channel=int(count > 1),
        **_weighed(t, weights, outputs, count=count),
    )  # fmt: skip


def _weighed(t: StepWriter, weights: Array, outputs: int, *, count: int) -> dict[str, str]:
    """Return the fields of what is computed with weights, `count` factors and shifts."""
    bias = per_output(t.array(2) if t.has(2) else None, np.int32, outputs)
    factors, shifts = (np.broadcast_to(each, (count,)) for each in multipliers(t))
    return {
        "bias_dims": _braced(1, 1, 1, outputs),
        "filter": t.constant(weights, "weights"),
        "bias": t.constant(bias, "bias"),
        "factors": t.constant(factors, "factors"),
        "shifts": t.constant(shifts.astype(np.int32), "shifts"),
    }


def _pool(t: StepWriter) -> None:
    operator = t.operator
    assert isinstance(operator, Pool2D)
    kind = "average" if operator.kind is PoolKind.AVERAGE else "max"
    _call(
        t, f"cmsis_{kind}_pool_s8", "cmsis_pool", t.input(),
        params=_braced(_tile(operator.strides), _tile(operator.padding[::3]), _clamp(t)),
        in_dims=_braced(*t.input().shape),
        window_dims=_braced(1, *operator.window, 1),
        out_dims=_braced(*t.output().shape),
    )  # fmt: skip


def _binary(t: StepWriter) -> None:
    operator = t.operator
    assert isinstance(operator, Binary)
    one, other, result = t.input(0), t.input(1), t.output()
    low, high = clamp_of(operator.min, operator.max, result)
    fields = {
        "count": result.num_elements, "offset_a": -zero_of(one), "offset_b": -zero_of(other),
        "out_zero": zero_of(result), "low": low, "high": high,
    }  # fmt: skip
    if operator.function is BinaryFunction.ADD:
        (factor_a, shift_a), (factor_b, shift_b), (factor, shift) = addends(one, other, result)
        fields |= {
            "factor_a": factor_a, "shift_a": shift_a, "factor_b": factor_b, "shift_b": shift_b,
            "left_shift": ADD_SHIFT,
        }  # fmt: skip
    else:
        factor, shift = quantised_multiplier(scale_of(one) * scale_of(other) / scale_of(result))
    kind = f"cmsis_{operator.function.value}"
    _call(t, f"{kind}_s8", kind, one, other, **fields, factor=factor, shift=shift)


def _softmax(t: StepWriter) -> None:
    operator, source = t.operator, t.input()
    assert isinstance(operator, Softmax)
    check_256ths(t.output())
    factor, shift, least = tables.difference_scale(scale_of(source), operator.beta)
    width = source.shape[-1]
    _call(
        t, "cmsis_softmax_s8", "cmsis_softmax", source, rows=source.num_elements // width,
        width=width, factor=factor, shift=shift, least=-least,
    )  # fmt: skip


_WRITERS: Mapping[type[Operator], Write] = {
    Conv2D: _conv,
    DepthwiseConv2D: _depthwise,
    FullyConnected: _fully_connected,
    Pool2D: _pool,
    Binary: _binary,
    Softmax: _softmax,
}


def _call(
    t: StepWriter, kernel: str, structure: str, *operands: Tensor, **values: float | str
) -> None:
    """Write a call, handed working memory if its layer states how much."""
    size, place = t.working_memory()
    has_buffer = "buffer_bytes" in kernels.fields(structure)
    assert has_buffer or not size
    layer = t.layer(structure, **values, **({"buffer_bytes": size} if has_buffer else {}))
    addresses = [t.address(tensor) for tensor in (*operands, t.output())]
    t.checked_call(kernel, layer, *addresses, *([place] if has_buffer else []))


def _offsets(t: StepWriter) -> tuple[str, str]:
    return str(-zero_of(t.input())), str(zero_of(t.output()))


def _clamp(t: StepWriter) -> str:
    operator = t.operator
    assert isinstance(operator, Clamped)
    return _braced(*clamp_of(operator.min, operator.max, t.output()))


def _tile(pair: tuple[int, ...]) -> str:
    """Return rows and columns as CMSIS-NN has them, columns first."""
    rows, columns = pair
    return _braced(columns, rows)


def _braced(*values: int | str) -> str:
    return "{" + ", ".join(map(str, values)) + "}"

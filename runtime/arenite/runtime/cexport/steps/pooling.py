"""Pools of windows."""

from arenite.runtime.cexport import tables
from arenite.runtime.cexport.arithmetic import clamp_of
from arenite.runtime.cexport.errors import NotWrittenError
from arenite.runtime.cexport.steps.elementwise import look_up
from arenite.runtime.cexport.steps.registry import writes
from arenite.runtime.cexport.steps.writer import StepWriter
from arenite.runtime.operators.elementwise import Unary, UnaryFunction
from arenite.runtime.operators.pooling import Pool2D, PoolKind


@writes(Pool2D)
def pool_2d(t: StepWriter) -> None:
    """Write a pool, one call a plane."""
    operator = t.operator
    assert isinstance(operator, Pool2D)
    source, result = t.input(), t.output()
    kind = t.types("int8", "float32")
    if len(t.step.outputs) > 1:
        raise NotWrittenError("it also tells where the largest lies")
    if operator.dilations != (1, 1) or operator.count_padding:
        raise NotWrittenError("its window is dilated or counts its padding")
    moves = kind == "int8" and source.quantisation != result.quantisation
    size, suffix = source.dtype.bits // 8, "s8" if kind == "int8" else "f32"
    batch, height, width, depth = source.shape
    _, out_height, out_width, _ = result.shape
    geometry = {
        "height": height, "width": width, "depth": depth, "out_width": out_width,
        "kernel_y": operator.window[0], "kernel_x": operator.window[1],
        "stride_y": operator.strides[0], "stride_x": operator.strides[1],
        "top": operator.padding[0], "left": operator.padding[3],
    }  # fmt: skip
    if kind == "int8":
        # Of another scale, the result is clamped by the table that follows.
        low, high = (-128, 127) if moves else clamp_of(operator.min, operator.max, result)
        lift = 128 if is_shifted(t) else 0
        layer = t.layer("pool_layer", **geometry, lift=lift, low=low, high=high)
    else:
        layer = t.layer("pool_layer_f32", **geometry, low=operator.min, high=operator.max)
    if t.sums:
        if moves or operator.window[0] - operator.padding[0] < height:
            raise NotWrittenError("there is no kernel that takes its rows a few at a time")
        t.call(
            f"average_pool_by_rows_{suffix}", layer, t.sums,
            t.rows_of(source, width * depth * size), t.rows_to(result, out_width * depth * size),
            0, height,
        )  # fmt: skip
        return
    name = "average_pool" if operator.kind is PoolKind.AVERAGE else "max_pool"
    for plane in t.planes(batch):
        t.call(
            f"{name}_{suffix}",
            layer,
            t.rows_of(source, width * depth * size, plane, height * width * depth * size),
            t.rows_to(
                result, out_width * depth * size, plane, out_height * out_width * depth * size
            ),
            0,
            out_height,
        )
    if moves:
        clamp = Unary(function=UnaryFunction.CLAMP, alpha=operator.min, beta=operator.max)
        table = tables.unary(clamp, source, result, single_rounding=t.file.single_rounding)
        look_up(t, table, source=result)


def is_shifted(t: StepWriter) -> bool:
    """Tell whether the step computes in bytes that have no sign, stored less 128."""
    return t.input().name in t.layout.shifted

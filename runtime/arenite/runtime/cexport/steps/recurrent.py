"""Recurrent layers, whose state lies in the arena."""

import numpy as np

from arenite.runtime.cexport.arithmetic import (
    quantised_multiplier,
    scale_of,
    zero_of,
)
from arenite.runtime.cexport.errors import NotWrittenError
from arenite.runtime.cexport.steps.registry import writes
from arenite.runtime.cexport.steps.writer import StepWriter
from arenite.runtime.operators.recurrent import Lstm, Svdf


@writes(Svdf)
def svdf(t: StepWriter) -> None:
    """Write filters over features and their past, one call a sequence of the batch."""
    operator = t.operator
    assert isinstance(operator, Svdf)
    kind = t.types("int8", "float32")
    source, result, state = t.input(), t.output(), t.input(4)
    features, times = t.array(1), t.array(2)
    filters, memory = times.shape
    units = filters // operator.rank
    sizes = {
        "inputs": features.shape[1], "filters": filters, "memory": memory,
        "rank": operator.rank,
    }  # fmt: skip
    if kind == "float32":
        bias = t.array(3) if t.has(3) else np.zeros(units, np.float32)
        kernel, element = "svdf_f32", "float"
        layer = t.layer(
            "svdf_layer_f32", **sizes, low=operator.min, high=operator.max,
            features=t.constant(features, "features"), times=t.constant(times, "times"),
            bias=t.constant(bias, "bias"),
        )  # fmt: skip
    else:
        if times.dtype.name not in ("int8", "int16") or state.dtype.label != times.dtype.name:
            raise NotWrittenError(f"its state is {state.dtype.label}")
        kernel = "svdf_s16" if times.dtype == np.int16 else "svdf_s8"
        element = f"{times.dtype.name}_t"
        layer = _integer_svdf(t, operator, kernel, sizes, units)
    data = {"int8": ("(const int8_t *)", "(int8_t *)"),
            "float32": ("(const float *)(const void *)", "(float *)(void *)")}[kind]  # fmt: skip
    through = "(int8_t *)" if element == "int8_t" else f"({element} *)(void *)"
    size, wide = source.dtype.bits // 8, state.dtype.bits // 8
    for plane in t.planes(source.shape[0]):
        t.call(
            kernel,
            layer,
            f"{data[0]}({t.address(source, plane, features.shape[1] * size)})",
            f"{through}({t.address(state, plane, filters * memory * wide)})",
            f"{data[1]}({t.address(result, plane, units * size)})",
        )


def _integer_svdf(
    t: StepWriter, operator: Svdf, kernel: str, sizes: dict[str, int], units: int
) -> str:
    source, result, state = t.input(), t.output(), t.input(4)
    if zero_of(state):
        raise NotWrittenError("its state has a zero point")
    feature = quantised_multiplier(scale_of(source) * scale_of(t.input(1)) / scale_of(state))
    time = quantised_multiplier(scale_of(state) * scale_of(t.input(2)) / scale_of(result))
    bias = t.array(3) if t.has(3) else np.zeros(units, np.int32)
    return t.layer(
        kernel.replace("_", "_layer_"),
        **sizes,
        in_zero=zero_of(source),
        feature_factor=feature[0],
        feature_shift=feature[1],
        factor=time[0],
        shift=time[1],
        out_zero=zero_of(result),
        # The reference kernels clamp integers to what a byte holds, whatever the activation.
        low=-128,
        high=127,
        features=t.constant(t.array(1), "features"),
        times=t.constant(t.array(2), "times"),
        bias=t.constant(bias, "bias"),
    )


@writes(Lstm)
def lstm(t: StepWriter) -> None:
    """Write a long short-term memory of floats that keeps its state."""
    operator = t.operator
    assert isinstance(operator, Lstm)
    t.types("float32")
    weights, recurrent = t.array(1), t.array(2)
    if not operator.keeps_state or operator.reverse or weights.shape[0] != 1:
        raise NotWrittenError("it runs backwards, or starts from states that are given")
    source, result = t.input(), t.output()
    times, batch = source.shape[:2]
    if operator.batch_major:
        times, batch = batch, times
    inputs, units = weights.shape[2], recurrent.shape[2]
    layer = t.layer(
        "lstm_layer_f32", inputs=inputs, units=units, clip=operator.cell_clip,
        weights=t.constant(weights, "weights"), recurrent=t.constant(recurrent, "recurrent"),
        bias=t.constant(t.array(3), "bias"),
    )  # fmt: skip
    pitches = (times, 1) if operator.batch_major else (1, batch)
    for plane in t.planes(batch):
        t.call(
            "lstm_f32",
            layer,
            f"(const float *)(const void *)({t.address(source, plane, 4 * inputs * pitches[0])})",
            inputs * pitches[1],
            times,
            f"(float *)(void *)({t.address(t.input(4), plane, 4 * units)})",
            f"(float *)(void *)({t.address(t.input(5), plane, 4 * units)})",
            f"(float *)(void *)({t.address(result, plane, 4 * units * pitches[0])})",
            units * pitches[1],
        )

"""Small programs for the native runtime, made without any model format."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from arenite.planner.programs.program import Array, OperatorSet, Port, Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.tensors import DType, Quantisation, Tensor, TensorKind
from arenite.runtime.operators import (
    Binary,
    BinaryFunction,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    Pool2D,
    PoolKind,
    RuntimeOperator,
    Softmax,
)
from arenite.runtime.program import assemble, write_assembly
from arenite.runtime.rewrites import pack_filters
from arenite.strategies import find

_ALL = (1, 1, 1, 1)

# Name, operator, what it reads, shape of the result, its scale and zero point.
_CLASSIFIER: tuple[tuple[str, RuntimeOperator, tuple[str, ...], tuple[int, ...], float, int], ...]
_CLASSIFIER = (
    (
        "conv",
        Conv2D(padding=_ALL, strides=(2, 2)),
        ("image", "f0", "b0"),
        (1, 8, 8, 16),
        0.05,
        -10,
    ),
    ("deep", DepthwiseConv2D(padding=_ALL), ("conv", "f1", "b1"), (1, 8, 8, 16), 0.06, 3),
    ("point", Conv2D(), ("deep", "f2", "b2"), (1, 8, 8, 16), 0.08, -5),
    ("sum", Binary(function=BinaryFunction.ADD), ("conv", "point"), (1, 8, 8, 16), 0.1, 4),
    ("pool", Pool2D(kind=PoolKind.AVERAGE, window=(8, 8)), ("sum",), (1, 1, 1, 16), 0.1, 4),
    ("scores", FullyConnected(), ("pool", "f3", "b3"), (1, 1, 1, 10), 0.05, 0),
    ("classes", Softmax(), ("scores",), (1, 1, 1, 10), 1 / 256, -128),
)
_FILTERS = {
    "f0": (16, 3, 3, 3), "f1": (1, 3, 3, 16), "f2": (16, 1, 1, 16), "f3": (10, 16),
}  # fmt: skip
_IMAGE = (1, 16, 16, 3)


def classifier(folder: Path, *, quantised: bool) -> Path:
    """Write a classifier of images of 3 x 16 x 16 into ten classes, and return the file.

    The caller's image is channels first, so that it is stored in another order.
    """
    generator = np.random.default_rng(7)
    dtype = DType.INT8 if quantised else DType.FLOAT32
    tensors = {"image": Tensor("image", dtype, _IMAGE, TensorKind.INPUT)}
    quantisations = {"image": Quantisation((0.02,), 5)}
    constants: dict[str, Array] = {}
    for index, (name, shape) in enumerate(_FILTERS.items()):
        constants[name] = generator.standard_normal(shape).astype(np.float32) * 0.3
        count = shape[3] if index == 1 else shape[0]
        constants[f"b{index}"] = generator.standard_normal(count).astype(np.float32)
    for name, _, reads, shape, scale, zero_point in _CLASSIFIER:
        kind = TensorKind.OUTPUT if name == "classes" else TensorKind.ACTIVATION
        tensors[name] = Tensor(name, dtype, shape, kind)
        quantisations[name] = Quantisation((scale,), zero_point)
        if quantised and len(reads) == 3:
            source = quantisations[reads[0]].scales[0]
            _quantise(constants, quantisations, reads[1], reads[2], source)
    return _write(
        folder / f"classifier_{dtype.label}.arena",
        tensors,
        [(operator, reads, name) for name, operator, reads, *_ in _CLASSIFIER],
        constants,
        quantisations if quantised else {},
        Port("image", "image", (0, 2, 3, 1)),
        Port("classes", "classes"),
    )


def accumulator(folder: Path) -> Path:
    """Write a program that adds its input to what it keeps, from 1 on, and return the file."""
    shape = (4,)
    tensors = {
        "x": Tensor("x", DType.FLOAT32, shape, TensorKind.INPUT),
        "total": Tensor("total", DType.FLOAT32, shape, TensorKind.STATE),
        "sum": Tensor("sum", DType.FLOAT32, shape, TensorKind.OUTPUT),
    }
    add = Binary(function=BinaryFunction.ADD)
    keep = Binary(function=BinaryFunction.MAXIMUM)
    return _write(
        folder / "accumulator.arena",
        tensors,
        [(add, ("total", "x"), "sum"), (keep, ("sum", "sum"), "total")],
        {"start": np.ones(shape, np.float32)},
        {},
        Port("x", "x"),
        Port("sum", "sum"),
        initial={"total": "start"},
    )


def _quantise(
    constants: dict[str, Array],
    quantisations: dict[str, Quantisation],
    filter_name: str,
    bias: str,
    source: float,
) -> None:
    """Quantise a filter by channel, or as a whole one of a matrix, and its bias with it."""
    numbers = constants[filter_name]
    axis = 3 if numbers.shape[0] == 1 else 0
    others = tuple(each for each in range(numbers.ndim) if each != axis or numbers.ndim == 2)
    scales = np.atleast_1d(np.squeeze(np.abs(numbers).max(axis=others) / 127))
    shaped = scales.reshape([-1 if each == axis else 1 for each in range(numbers.ndim)])
    constants[filter_name] = np.round(numbers / shaped).astype(np.int8)
    constants[bias] = np.round(constants[bias] / (source * scales)).astype(np.int32)
    quantisations[filter_name] = Quantisation(tuple(map(float, scales)), 0, axis)
    quantisations[bias] = Quantisation(tuple(map(float, source * scales)))


def _write(
    path: Path,
    tensors: Mapping[str, Tensor],
    stated: list[tuple[RuntimeOperator, tuple[str, ...], str]],
    constants: Mapping[str, Array],
    quantisations: Mapping[str, Quantisation],
    source: Port,
    result: Port,
    initial: Mapping[str, str] | None = None,
) -> Path:
    labels = {dtype.label: dtype for dtype in DType}
    known = {
        name: Tensor(name, labels[array.dtype.name], array.shape, TensorKind.CONSTANT)
        for name, array in constants.items()
    }
    known.update(tensors)
    program = Program.of(
        path.stem,
        [replace(each, quantisation=quantisations.get(each.name)) for each in known.values()],
        [Step(f"to {name}", operator, reads, (name,)) for operator, reads, name in stated],
        (source,),
        (result,),
        operator_set=OperatorSet.ARENITE,
        constants=constants,
        initial=initial or {},
    )
    program = pack_filters(program)
    problem = liveness(program, alignment=64)
    plan = find("greedy-by-size")(problem)
    assembly = assemble(program, problem, plan, digest="0" * 64, producer="test")
    write_assembly(path, assembly)
    return path

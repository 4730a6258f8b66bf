"""What TFLite operators make of resized inputs; LiteRT is asked in the runtime's tests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")

from tflite import BuiltinOperator as Op
from tflite import TensorType

from arenite.planner.errors import BindingError, ModelFormatError
from arenite.planner.importers import load
from arenite.planner.importers.tflite import read_tflite
from arenite.planner.importers.tflite.shapes import SHAPES, MisfitError, Options, Resized, Shape
from arenite.planner.sizes import Dimension, at
from support.shared_material import shared
from support.tiny_signals import framed
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

ONE = [(1,)]


def asked(
    inputs: Sequence[Shape],
    values: Mapping[int, Sequence[int]],
    options: Options,
    num_outputs: int,
) -> Resized:
    arrays = {position: np.array(value) for position, value in values.items()}
    return Resized(inputs, arrays, ONE * num_outputs, options, {})


RIGHT: Mapping[str, tuple[str, Resized, list[Shape]]] = {
    "concatenation": (
        "CONCATENATION", asked([(2, 3), (2, 4)], {}, {"Axis": -1}, 1), [(2, 7)],
    ),
    "pack": ("PACK", asked([(2, 3), (2, 3)], {}, {"Axis": 1}, 1), [(2, 2, 3)]),
    "unpack": ("UNPACK", asked([(2, 3)], {}, {"Axis": 0}, 2), [(3,), (3,)]),
    "split": ("SPLIT", asked([(), (2, 6)], {0: [1]}, {}, 3), [(2, 2)] * 3),
    "split by sizes": (
        "SPLIT_V", asked([(2, 6), (2,), ()], {1: [4, -1], 2: [1]}, {}, 2), [(2, 4), (2, 2)],
    ),
    "squeeze": ("SQUEEZE", asked([(1, 5, 1)], {}, {"SqueezeDims": (2,)}, 1), [(1, 5)]),
    "squeeze all": ("SQUEEZE", asked([(1, 5, 1)], {}, {}, 1), [(5,)]),
    "gather": ("GATHER", asked([(3, 4, 5), (7,)], {}, {"Axis": 1}, 1), [(3, 7, 5)]),
    "arg max": ("ARG_MAX", asked([(3, 4), ()], {1: [1]}, {}, 1), [(3,)]),
    "slice to the end": (
        "SLICE", asked([(5, 6), (2,), (2,)], {1: [2, 1], 2: [-1, 3]}, {}, 1), [(3, 3)],
    ),
    "blocks of space": (
        "SPACE_TO_BATCH_ND",
        asked([(1, 5, 8, 3), (2,), (2, 2)], {1: [2, 2], 2: [1, 0, 0, 0]}, {}, 1), [(4, 3, 4, 3)],
    ),
    "blocks of the batch": (
        "BATCH_TO_SPACE_ND",
        asked([(8, 3, 4, 3), (2,), (2, 2)], {1: [2, 2], 2: [1, 0, 0, 0]}, {}, 1), [(2, 5, 8, 3)],
    ),
    "range": ("RANGE", asked([(), (), ()], {0: [2], 1: [9], 2: [3]}, {}, 1), [(3,)]),
    "fill": ("FILL", asked([(2,), ()], {0: [4, 5]}, {}, 1), [(4, 5)]),
    "tile": ("TILE", asked([(2, 3), (2,)], {1: [2, 4]}, {}, 1), [(4, 12)]),
    "broadcast to": ("BROADCAST_TO", asked([(1, 3), (3,)], {1: [2, 5, 3]}, {}, 1), [(2, 5, 3)]),
    "matrices": ("BATCH_MATMUL", asked([(2, 3, 4), (4, 5)], {}, {}, 1), [(2, 3, 5)]),
    "matrices transposed": (
        "BATCH_MATMUL", asked([(4, 3), (5, 4)], {}, {"AdjX": True, "AdjY": True}, 1), [(3, 5)],
    ),
    "spectrum": ("RFFT2D", asked([(2, 1, 9), (2,)], {1: [1, 8]}, {}, 1), [(2, 1, 5)]),
    "sizes of complex numbers": ("COMPLEX_ABS", asked([(2, 1, 5)], {}, {}, 1), [(2, 1, 5)]),
    "real parts": ("REAL", asked([(2, 1, 5)], {}, {}, 1), [(2, 1, 5)]),
    "imaginary parts": ("IMAG", asked([(2, 1, 5)], {}, {}, 1), [(2, 1, 5)]),
    "reshape by option": ("RESHAPE", asked([(4, 6)], {}, {"NewShape": (3, -1)}, 1), [(3, 8)]),
    "variable": ("READ_VARIABLE", asked([(1,)], {}, {}, 1), [(1,)]),
}  # fmt: skip
WRONG: Mapping[str, tuple[str, Resized, str]] = {
    "concatenation": ("CONCATENATION", asked([(2, 3), (3, 3)], {}, {"Axis": 1}, 1), "concatenate"),
    "broadcast": ("ADD", asked([(2, 3), (4, 3)], {}, {}, 1), "do not broadcast"),
    "axis": ("CONCATENATION", asked([(2, 3)], {}, {"Axis": 2}, 1), "axis 2 does not exist"),
    "pack": ("PACK", asked([(2, 3), (2, 4)], {}, {}, 1), "differ in shape"),
    "unpack": ("UNPACK", asked([(3, 3)], {}, {}, 2), "axis 0 has length 3, expected 2"),
    "split": ("SPLIT", asked([(), (2, 5)], {0: [1]}, {}, 3), "does not split into 3"),
    "sizes": ("SPLIT_V", asked([(2, 5), (2,), ()], {1: [4, 2], 2: [1]}, {}, 2), "does not split"),
    "squeeze": ("SQUEEZE", asked([(2, 5)], {}, {"SqueezeDims": (0,)}, 1), "cannot squeeze"),
    "slice": ("SLICE", asked([(5,), (1,), (1,)], {1: [3], 2: [3]}, {}, 1), "the slice leaves"),
    "unknown": ("SLICE", asked([(5,), (1,), (1,)], {1: [3]}, {}, 1), "unknown before the run"),
    "filter": (
        "CONV_2D", asked([(1, 8, 8, 3), (4, 3, 3, 2)], {}, {}, 1), "has 3 channels, the filter 2",
    ),
    "depthwise": (
        "DEPTHWISE_CONV_2D", asked([(1, 8, 8, 3), (1, 3, 3, 4)], {}, {}, 1), "the filter 4",
    ),
    "rows": ("FULLY_CONNECTED", asked([(3, 5), (2, 4)], {}, {}, 1), "15 elements do not divide"),
    "rank": ("MAX_POOL_2D", asked([(3, 5)], {}, {}, 1), "input has rank 2, expected 4"),
    "blocks": (
        "SPACE_TO_BATCH_ND",
        asked([(1, 5, 8, 3), (2,), (2, 2)], {1: [2, 2], 2: [0, 0, 0, 0]}, {}, 1), "not divide",
    ),
    "batch": (
        "BATCH_TO_SPACE_ND",
        asked([(3, 5, 8, 3), (2,), (2, 2)], {1: [2, 2], 2: [0, 0, 0, 0]}, {}, 1), "not a multiple",
    ),
    "depth": ("DEPTH_TO_SPACE", asked([(1, 2, 2, 6)], {}, {"BlockSize": 2}, 1), "block_size=2"),
    "space": ("SPACE_TO_DEPTH", asked([(1, 3, 2, 6)], {}, {"BlockSize": 2}, 1), "block_size=2"),
    "range": ("RANGE", asked([(), (), ()], {0: [2], 1: [9], 2: [0]}, {}, 1), "a step is 0"),
    "tile": ("TILE", asked([(2, 3), (1,)], {1: [2]}, {}, 1), "do not fit"),
    "broadcast to": ("BROADCAST_TO", asked([(4,), (1,)], {1: [3]}, {}, 1), "do not broadcast"),
    "matrices": ("BATCH_MATMUL", asked([(3, 4), (5, 4)], {}, {}, 1), "cannot multiply"),
    "vectors": ("BATCH_MATMUL", asked([(4,), (4, 5)], {}, {}, 1), "rank below 2"),
    "spectrum": ("RFFT2D", asked([(9,), (2,)], {1: [1, 8]}, {}, 1), "fft_length"),
    "variable": ("ASSIGN_VARIABLE", asked([(2,)], {}, {}, 1), "variable of shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_an_operator_passes_a_shape_on(name: str) -> None:
    code, operands, expected = RIGHT[name]
    assert SHAPES[code](operands) == expected


@pytest.mark.parametrize("name", WRONG)
def test_an_operator_says_why_it_does_not_take_a_shape(name: str) -> None:
    code, operands, complaint = WRONG[name]
    with pytest.raises(MisfitError, match=complaint):
        SHAPES[code](operands)


def int32(name: str, *values: int) -> TinyTensor:
    data = np.array(values, "<i4").tobytes()
    return TinyTensor(name, (len(values),), TensorType.INT32, data)


def chain(last: int | str = Op.RELU) -> TinySubgraph:
    """A reshape to a shape that is computed from that of its input, and another operator."""
    tensors = [
        TinyTensor("x", (1, 4, 6), signature=(-1, 4, -1)),
        TinyTensor("shape", (3,), TensorType.INT32),
        int32("two", 2),
        TinyTensor("wanted", (3,), TensorType.INT32),
        TinyTensor("y", (2, 2, 6)),
        TinyTensor("z", (2, 2, 6)),
        TinyTensor("other", (1, 5)),
        TinyTensor("own", (1, 5)),
        int32("factors", 2, 2, 2),
    ]
    operators = [
        TinyOperator(Op.SHAPE, [0], [1]),
        TinyOperator(Op.MUL, [1, 2], [3]),
        TinyOperator(Op.RESHAPE, [0, 3], [4]),
        TinyOperator(last, [4], [5]),
        TinyOperator("mine", [6], [7]),
    ]
    return TinySubgraph(tensors, operators, [0, 6], [5, 7])


def written(folder: Path, subgraph: TinySubgraph) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(tiny_tflite(subgraph))
    return path


def test_shapes_that_the_model_computes_are_computed_anew(tmp_path: Path) -> None:
    subgraph = chain()
    index = next(i for i, each in enumerate(subgraph.tensors) if each.name == "two")
    tensors = [*subgraph.tensors]
    tensors[index] = int32("two", 1)
    path = written(tmp_path, replace(subgraph, tensors=tensors))
    program = load(path, shapes={"x": (3, 4, 10)})
    assert [program.tensors[name].shape for name in "xyz"] == [(3, 4, 10)] * 3
    assert program.tensors["own"].shape == (1, 5)
    assert not any("free dimensions" in note for note in program.notes)
    with pytest.raises(
        BindingError, match=r"RESHAPE_2: cannot reshape \(3, 4, 10\) to \(6, 8, 20\)"
    ):
        load(written(tmp_path, subgraph), shapes={"x": (3, 4, 10)})


def test_sizes_that_follow_from_a_shape_are_planned_and_not_those_of_the_file(
    tmp_path: Path,
) -> None:
    program = load(written(tmp_path, framed(40)))
    shapes = {name: tensor.shape for name, tensor in program.tensors.items()}
    assert shapes["in blocks"] == (1, 10, 4)
    assert shapes["gathered"] == (1, 9, 2, 4)
    assert shapes["frames"] == shapes["y"] == (1, 9, 8)
    assert program.notes == ()


def test_sizes_that_follow_from_a_shape_and_cannot_be_computed_are_noted(tmp_path: Path) -> None:
    subgraph = framed(40)
    *others, last = subgraph.operators
    path = written(tmp_path, replace(subgraph, operators=[*others, replace(last, code="theirs")]))
    program = load(path)
    assert program.tensors["frames"].shape == (1, 1, 8)
    assert any("are taken from the file: " in note for note in program.notes)


def test_a_shape_of_what_is_known_only_in_the_run_is_no_value(tmp_path: Path) -> None:
    tensors = [
        TinyTensor("x", (1, 4), TensorType.FLOAT32), TinyTensor("found", (1, 4)),
        TinyTensor("shape", (2,), TensorType.INT32), TinyTensor("y", (2, 4)),
    ]  # fmt: skip
    operators = [
        TinyOperator("find", [0], [1]),
        TinyOperator(Op.SHAPE, [1], [2]),
        TinyOperator(Op.RESHAPE, [0, 2], [3]),
    ]
    program = load(written(tmp_path, TinySubgraph(tensors, operators, [0], [3])))
    assert program.tensors["y"].shape == (2, 4)


def test_a_constant_of_no_elements_and_absurd_axes_is_refused(tmp_path: Path) -> None:
    axes = (0, (1 << 31) - 1, (1 << 31) - 1)
    tensors = [TinyTensor("x"), TinyTensor("none", axes, TensorType.INT32), TinyTensor("y")]
    operators = [TinyOperator("theirs", [0, 1], [2])]
    path = written(tmp_path, TinySubgraph(tensors, operators, [0], [2]))
    constants = read_tflite(path, weights=True).constants
    with pytest.raises(ModelFormatError, match="'none': array is too big"):
        constants.get("none")


@pytest.mark.parametrize("count", [1 << 20, (1 << 31) - 1])
def test_values_that_would_fill_memory_are_not_computed(tmp_path: Path, count: int) -> None:
    tensors = [
        TinyTensor("x", (1, count), TensorType.INT8), TinyTensor("shape", (2,), TensorType.INT32),
        int32("zeros", 0, 0), TinyTensor("filled", (1,), TensorType.INT32),
        TinyTensor("value", (), TensorType.INT32, np.array(7, "<i4").tobytes()),
    ]  # fmt: skip
    operators = [TinyOperator(Op.SHAPE, [0], [1]), TinyOperator(Op.FILL, [1, 4], [3])]
    program = load(written(tmp_path, TinySubgraph(tensors, operators, [0], [3])))
    assert program.tensors["filled"].shape == (1, count)


def test_an_operator_whose_shapes_are_not_known_is_refused_only_on_the_way(tmp_path: Path) -> None:
    subgraph = chain("theirs")
    tensors = [int32("two", 1) if each.name == "two" else each for each in subgraph.tensors]
    path = written(tmp_path, replace(subgraph, tensors=tensors))
    assert load(path, shapes={"x": (1, 4, 6)}) == load(path)
    with pytest.raises(BindingError, match="theirs_3: its output shapes cannot be derived"):
        load(path, shapes={"x": (2, 4, 6)})


def test_a_shape_that_makes_a_tensor_too_large_is_refused(tmp_path: Path) -> None:
    tensors = [
        TinyTensor("x", (1, 4), signature=(-1, 4)),
        TinyTensor("y", (4, 4), TensorType.FLOAT32),
    ]
    tensors.append(TinyTensor("w", (1 << 30, 1, 4), data=bytes(4)))
    model = TinySubgraph(tensors, [TinyOperator(Op.ADD, [0, 2], [1])], [0], [1])
    with pytest.raises(BindingError, match="'x' makes 'y' too large"):
        load(written(tmp_path, model), shapes={"x": (1 << 30, 4)})


@pytest.mark.parametrize(
    ("operator", "complaint"),
    [
        (TinyOperator(Op.RELU, [0], [1, 2]), None),
        (TinyOperator(Op.ADD, [0, 0], [1, 2]), "ADD_0: 2 outputs, expected 1"),
        (TinyOperator(Op.SPLIT, [3, 0], []), "SPLIT_0: operands do not fit"),
        (TinyOperator(Op.CONV_2D, [0], [1]), "CONV_2D_0: operands do not fit"),
    ],
)
def test_operators_with_operands_that_they_cannot_have_are_refused(
    tmp_path: Path, operator: TinyOperator, complaint: str | None
) -> None:
    tensors = [TinyTensor("x", (1, 4), signature=(-1, 4)), *map(TinyTensor, "yz"), int32("n", 0)]
    path = written(tmp_path, TinySubgraph(tensors, [operator], [0], [0]))
    if complaint is None:
        assert load(path, shapes={"x": (2, 4)}).tensors["z"].shape == (2, 4)
        return
    with pytest.raises(BindingError, match=complaint):
        load(path, shapes={"x": (2, 4)})


@pytest.mark.parametrize("samples", [Dimension("", 8, 40, 4), Dimension("n", 12, 28, 8)])
def test_a_range_of_lengths_has_those_of_each_size(samples: Dimension, tmp_path: Path) -> None:
    subgraph = framed(40)
    subgraph.tensors[0] = replace(subgraph.tensors[0], signature=(1, -1))
    path = written(tmp_path, subgraph)
    name = load(path).input_tensors[0]
    ranged = load(path, shapes={name: (1, samples)})
    (dimension,) = ranged.dimensions
    assert dimension.name == samples.name or dimension.name == f"{name}:1"
    for size in samples.values:
        fixed = load(path, shapes={name: (1, size)})
        assert "SHAPE" not in {step.operator.label for step in ranged.steps}
        for tensor in ranged.tensors.values():
            shape = tuple(at(length, {dimension.name: size}) for length in tensor.shape)
            assert shape == fixed.tensors[tensor.name].shape, (tensor.name, size)


def test_a_range_is_refused_where_a_length_is_not_known_for_all_sizes(tmp_path: Path) -> None:
    subgraph = framed(40)
    subgraph.tensors[0] = replace(subgraph.tensors[0], signature=(1, -1))
    path = written(tmp_path, subgraph)
    name = load(path).input_tensors[0]
    with pytest.raises(BindingError, match="cannot reshape"):
        load(path, shapes={name: (1, Dimension("", 8, 40))})
    with pytest.raises(BindingError, match="a length is at least 1"):
        load(path, shapes={name: (1, Dimension("", 0, 40))})


REAL = ["kws_ref_model", "vww_96_int8", "str_ww_ref_model", "ultraface_rfb320", "ad_toycar_hybrid"]


@pytest.mark.parametrize("model", REAL)
def test_real_models_are_read_for_a_range_of_batches(model: str) -> None:
    path = shared(f"models/tflite/{model}.tflite")
    name, *_ = load(path).input_tensors
    rest = load(path).tensors[name].shape[1:]
    ranged = load(path, shapes={name: (Dimension("n", 1, 4), *rest)})
    for size in (1, 3, 4):
        fixed = load(path, shapes={name: (size, *rest)})
        for tensor in ranged.tensors.values():
            shape = tuple(at(length, {"n": size}) for length in tensor.shape)
            if size > 1:  # at 1 the file states some wrong shapes
                assert shape == fixed.tensors[tensor.name].shape

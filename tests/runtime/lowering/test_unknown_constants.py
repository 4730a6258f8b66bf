"""A constant that is needed and not known is said to be so, with its file and what to do."""

import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from tflite import BuiltinOperator, TensorType

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.errors import MissingDataError, ModelFormatError, UnknownConstantError
from arenite.planner.importers.onnx.values import MAX_FOLDED_BYTES
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.tiny_onnx import parse, save
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

SIZE = 4 * 3 * 3 * 3 * 4
"""Bytes of the weights."""


def convolution(folder: Path, **stated: str) -> Path:
    """A convolution whose weights lie where the model states."""
    model = parse("(float[1, 3, 8, 8] x) => (y) { y = Conv(x, w) }")
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[4, 3, 3, 3])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in stated.items():
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    return save(folder, model)


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(SIZE))
    assert compile_model(convolution(tmp_path, location="w.bin")).program.steps


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ({"location": "gone.bin"}, "external file 'gone.bin' is missing; put it into the folder"),
        ({"location": "link.bin"}, "'link.bin' is a link out of the folder"),
        ({"location": "folder"}, "'folder' is not a regular file"),
        ({"location": "../w.bin"}, "'../w.bin' is outside the folder of the model"),
        ({"location": "/dev/zero", "length": str(SIZE)}, "'/dev/zero' is outside the folder"),
        ({"location": "short.bin"}, "'short.bin' states 100 B, expected 432 B; copy"),
        (
            {"location": "short.bin", "length": str(SIZE)},
            "bytes 0 to 432 exceed external file 'short.bin' of 100 B: the file is truncated",
        ),
        ({"location": "short.bin", "offset": "200"}, "'short.bin' states 0 B, expected 432 B"),
        ({"location": "short.bin", "offset": "many"}, "cannot be read"),
        ({"location": "short.bin", "start": "0"}, "external data key 'start' is unknown; known"),
        ({}, "its external data has no location"),
    ],
    ids=str,
)
def test_a_file_of_weights_that_is_not_as_stated_is_named(
    stated: dict[str, str], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "short.bin").write_bytes(bytes(100))
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.bin").symlink_to("/etc/hostname")
    with pytest.raises(MissingDataError, match=reason) as refused:
        compile_model(convolution(tmp_path, **stated))
    assert refused.value.tensor == "w"
    assert "--target generic" in str(refused.value)


def test_a_weight_made_of_a_missing_one_names_the_missing_one(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (y) { v = Neg(w) y = Add(x, v) }")
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[2])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="gone.bin")
    model.graph.initializer.append(tensor)
    with pytest.raises(MissingDataError, match=r"constant 'w': .*'gone\.bin'"):
        compile_model(save(tmp_path, model))


def test_sparse_weights_are_said_to_be_sparse(tmp_path: Path) -> None:
    model = parse("(float[4] x) => (y) { y = Add(x, w) }")
    values = onnx.numpy_helper.from_array(np.ones(1, np.float32), "w")
    indices = onnx.numpy_helper.from_array(np.array([2]), "w_indices")
    sparse = onnx.SparseTensorProto(values=values, indices=indices, dims=[4])
    model.graph.sparse_initializer.append(sparse)
    with pytest.raises(UnknownConstantError, match="'w': sparse constants are unsupported"):
        compile_model(save(tmp_path, model))


def sparse_tflite(folder: Path, *, sparse: bool) -> Path:
    """A fully connected layer whose weights hold fewer bytes than their shape takes."""
    tensors = [
        TinyTensor("x", (1, 16), TensorType.FLOAT32),
        TinyTensor("w", (4, 16), TensorType.FLOAT32, bytes(64), sparse=sparse),
        TinyTensor("y", (1, 4), TensorType.FLOAT32),
    ]
    operators = [TinyOperator(BuiltinOperator.FULLY_CONNECTED, [0, 1], [2])]
    path = folder / "sparse.tflite"
    path.write_bytes(tiny_tflite(TinySubgraph(tensors, operators, [0], [2])))
    return path


def test_damaged_sparse_weights_are_told_from_damaged_dense_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="sparse constant 'w': invalid traversal order"):
        compile_model(sparse_tflite(tmp_path, sparse=True))
    with pytest.raises(ModelFormatError, match="'w' holds 64 B, expected 256 B"):
        compile_model(sparse_tflite(tmp_path, sparse=False))


def test_no_other_runtime_is_promised_for_what_ours_lacks(tmp_path: Path) -> None:
    tensors = [TinyTensor("x"), TinyTensor("y")]
    operators = [TinyOperator(BuiltinOperator.HASHTABLE_SIZE, [0], [1])]
    path = tmp_path / "m.tflite"
    path.write_bytes(tiny_tflite(TinySubgraph(tensors, operators, [0], [1])))
    with pytest.raises(UnsupportedOperatorsError, match="LiteRT keeps if that runs it"):
        compile_model(path)


MADE_OF_NOTHING = {
    "ConstantOfShape": "r = ConstantOfShape(shape)",
    "Expand": "r = Expand(one, shape)",
    "Range": "r = Range(zero, end, step)",
    "Tile": "r = Tile(one, shape)",
    "made of it": "q = ConstantOfShape(shape) r = Abs(q)",
    "doubled": "a = Expand(one, few) b = Concat<axis=0>(a, a) c = Concat<axis=0>(b, b, b, b) "
    "d = Concat<axis=0>(c, c, c, c) e = Concat<axis=0>(d, d, d, d) r = Concat<axis=0>(e, e, e)",
}


@pytest.mark.parametrize("nodes", MADE_OF_NOTHING.values(), ids=MADE_OF_NOTHING)
def test_no_few_bytes_become_gigabytes(nodes: str, tmp_path: Path) -> None:
    constants = (
        "int64[1] shape = {100000000000}, int64[1] few = {1000000}, float[1] one = {1.0}, "
        "float zero = {0.0}, float end = {100000000000.0}, float step = {1.0}"
    )
    path = save(tmp_path, parse(f"(float[1] x) => (y) <{constants}> {{ {nodes} y = Add(x, r) }}"))
    tracemalloc.start()
    try:
        with pytest.raises(UnknownConstantError, match="B of it before the run; at most"):
            compile_model(path)
        assert tracemalloc.get_traced_memory()[1] < MAX_FOLDED_BYTES
    finally:
        tracemalloc.stop()


def test_weights_may_grow_with_what_was_read(tmp_path: Path) -> None:
    """Eight-bit weights turned into floats, twice over, are no attack."""
    text = """
        (float[1, 4000] x) => (y) <int8[6000, 4000] q, float scale = {0.5}, int8 zero = {0}> {
            w = DequantizeLinear(q, scale, zero)
            turned = Transpose(w)
            y = MatMul(x, turned)
        }
    """
    assert compile_model(save(tmp_path, parse(text))).program.steps

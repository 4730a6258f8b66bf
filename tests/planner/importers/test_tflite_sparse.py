"""Constants that are stored sparse are read as what they mean."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st
from tflite import BuiltinOperator as Op
from tflite import TensorType

from arenite.planner.errors import AreniteError, ModelFormatError, UnsupportedModelError
from arenite.planner.importers.tflite import read_tflite
from arenite.planner.programs.program import Program
from support.tiny_chains import stored_sparse
from support.tiny_tflite import TinyOperator, TinySparsity, TinySubgraph, TinyTensor, tiny_tflite

TYPES = {"float32": TensorType.FLOAT32, "float16": TensorType.FLOAT16, "int8": TensorType.INT8}
LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "rows of columns": {"sparse": [1]},
    "columns of rows": {"order": [1, 0], "sparse": [1]},
    "blocks of one axis": {"blocks": {1: 4}, "sparse": [1]},
    "blocks of both axes": {"blocks": {0: 2, 1: 4}, "sparse": [1]},
    "blocks in another order": {"order": [0, 1, 3, 2], "blocks": {0: 2, 1: 4}, "sparse": [1]},
    "rows that are sparse too": {"sparse": [0, 1]},
    "all there": {},
}


def thinned(shape: tuple[int, ...], dtype: str = "float32", *, seed: int = 0) -> np.ndarray:
    """An array most of whose blocks are zero, with one empty row."""
    rng = np.random.default_rng(seed)
    array = rng.integers(1, 100, shape) * (rng.random(shape) < 0.3)
    array[1] = 0
    return array.astype(dtype)


def sparse_model(folder: Path, sparsity: TinySparsity, data: bytes, **constant: Any) -> Path:
    shape = tuple(constant.pop("shape", (4, 8)))
    tensors = [
        TinyTensor("x", shape, constant.get("type", TensorType.FLOAT32)),
        TinyTensor("w", shape, data=data, sparse=sparsity, **{"type": 0, **constant}),
        TinyTensor("y", shape, constant.get("type", TensorType.FLOAT32)),
    ]
    path = folder / "sparse.tflite"
    operators = [TinyOperator(Op.ADD, [0, 1], [2])]
    path.write_bytes(tiny_tflite(TinySubgraph(tensors, operators, [0], [2])))
    return path


def read(path: Path) -> Program:
    return read_tflite(path, weights=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TYPES)
def test_a_sparse_constant_is_read_dense(tmp_path: Path, layout: str, dtype: str) -> None:
    array = thinned((4, 8), dtype)
    sparsity, data = stored_sparse(array, **LAYOUTS[layout])
    program = read(sparse_model(tmp_path, sparsity, data, type=TYPES[dtype]))
    np.testing.assert_array_equal(program.constants["w"], array)


@pytest.mark.parametrize("kind", ["Int32Vector", "Uint16Vector", "Uint8Vector"])
def test_indices_may_be_stored_in_fewer_bytes(tmp_path: Path, kind: str) -> None:
    array = thinned((3, 2, 2, 8))
    sparsity, data = stored_sparse(array, [0, 1, 2, 3], sparse=[3], kind=kind)
    program = read(sparse_model(tmp_path, sparsity, data, shape=array.shape))
    np.testing.assert_array_equal(program.constants["w"], array)


SOUND = TinySparsity([0, 1], [], [4, ([0, 1, 1, 2, 3], [2, 0, 3])])
ELEMENTS = np.array([1, 2, 3], np.float32).tobytes()
DAMAGED = {
    "an axis twice": (replace(SOUND, order=[0, 0]), "invalid traversal order"),
    "a block of no axis": (replace(SOUND, order=[0, 1, 2], blocks=[2]), "invalid traversal order"),
    "a level too few": (replace(SOUND, levels=[4]), "invalid traversal order"),
    "too few elements": (replace(SOUND, levels=[4, 8]), "32 indices for 3 elements"),
    "too many rows": (replace(SOUND, levels=[5, SOUND.levels[1]]), "5 segments are too few"),
    "too many places": (replace(SOUND, levels=[4, 9]), "more than 32 indices"),
    "a column outside": (
        replace(SOUND, levels=[4, ([0, 1, 1, 2, 3], [2, 8, 3])]), "an index is outside its shape",
    ),
    "a column below": (
        replace(SOUND, levels=[4, ([0, 1, 1, 2, 3], [2, -1, 3])]), "an index is outside its shape",
    ),
    "segments outside": (
        replace(SOUND, levels=[4, ([0, 1, 1, 2, 4], [2, 0, 3])]), "a segment is outside",
    ),
    "segments backwards": (
        replace(SOUND, levels=[4, ([0, 3, 1, 2, 3], [2, 0, 3])]), "a segment is outside",
    ),
    "a negative size": (replace(SOUND, levels=[-4, 8]), "dense size -4 is negative"),
    "sparse blocks": (
        TinySparsity([0, 1, 2], [1], [1, 1, ([0, 3], [0, 1, 2])]), "sparse blocks are unsupported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_what_does_not_fit_is_damage(tmp_path: Path, name: str) -> None:
    sparsity, complaint = DAMAGED[name]
    program = read(sparse_model(tmp_path, sparsity, ELEMENTS))
    with pytest.raises(ModelFormatError, match=f"sparse constant 'w': {complaint}"):
        program.constants["w"]


def test_half_an_element_is_damage(tmp_path: Path) -> None:
    program = read(sparse_model(tmp_path, SOUND, ELEMENTS + b"x"))
    with pytest.raises(ModelFormatError, match="'w': 13 B are not a whole number"):
        program.constants["w"]


def test_a_few_elements_are_not_made_what_fills_memory(tmp_path: Path) -> None:
    sparsity = replace(SOUND, levels=[4, ([0, 1, 1, 2, 3], [2, 0, 3])])
    program = read(sparse_model(tmp_path, sparsity, ELEMENTS, shape=(4, 1 << 30)))
    with pytest.raises(UnsupportedModelError, match="'w': 12 B of sparse elements"):
        program.constants["w"]


@settings(max_examples=200, deadline=None)
@given(position=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_flipped_byte_is_an_error_or_another_constant(
    tmp_path_factory: pytest.TempPathFactory, position: int, value: int
) -> None:
    path = sparse_model(tmp_path_factory.mktemp("flip"), SOUND, ELEMENTS)
    data = bytearray(path.read_bytes())
    data[position % len(data)] = value
    path.write_bytes(data)
    try:
        program = read(path)
        for name in program.tensors:
            program.constants.get(name)
    except AreniteError:
        pass

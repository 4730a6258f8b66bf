from pathlib import Path

import pytest
import tflite
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.importers.tflite import read_tflite_model
from arenite.runtime.targets.tflm.model_file import PLAN_NAME, ModelFile
from support.tiny_chains import dense_chain, dense_subgraph, float_tensor
from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

SIZES = (8, 4, 8)
OFFSETS = [0, 32, 64, -1, -1]


def plans(data: bytes) -> list[list[int]]:
    model = tflite.Model.GetRootAs(data, 0)
    entries = [model.Metadata(index) for index in range(model.MetadataLength())]
    return [
        model.Buffers(entry.Buffer()).DataAsNumpy().view("<i4").tolist()
        for entry in entries
        if entry.Name() == PLAN_NAME
    ]


def test_the_plan_is_read_back_as_it_was_written():
    planned = ModelFile(dense_chain(SIZES)).with_plan(OFFSETS)
    assert plans(planned) == [[1, 1, 5, *OFFSETS]]


def test_the_plan_lies_at_a_multiple_of_sixteen_bytes():
    planned = ModelFile(dense_chain(SIZES)).with_plan([7] * 5)
    assert planned.index(b"\x07\0\0\0" * 5) % 16 == 12


def test_nothing_else_of_the_model_changes(tmp_path: Path):
    data = dense_chain(SIZES)
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    before = read_tflite_model(path)
    path.write_bytes(ModelFile(data).with_plan(OFFSETS))
    assert read_tflite_model(path) == before


def test_weights_keep_their_alignment():
    weights = bytes(range(64)) * 2
    data = tiny_tflite(
        TinySubgraph([float_tensor("w", 32, weights), float_tensor("x", 1)], [], [1], [1])
    )
    planned = ModelFile(data).with_plan([-1, 0])
    assert (planned.index(weights) - data.index(weights)) % 64 == 0


def test_an_old_plan_is_replaced_and_other_metadata_stay():
    metadata = {"min_runtime_version": b"1.5.0", PLAN_NAME.decode(): b"\0" * 32}
    data = tiny_tflite(dense_subgraph(SIZES), metadata=metadata)
    planned = ModelFile(ModelFile(data).with_plan([0] * 5)).with_plan(OFFSETS)
    model = tflite.Model.GetRootAs(planned, 0)
    names = [model.Metadata(index).Name() for index in range(model.MetadataLength())]
    assert names == [b"min_runtime_version", PLAN_NAME]
    assert plans(planned) == [[1, 1, 5, *OFFSETS]]


def test_the_same_plan_gives_the_same_bytes():
    file = ModelFile(dense_chain(SIZES))
    assert file.with_plan(OFFSETS) == file.with_plan(OFFSETS)


def test_a_plan_of_another_length_is_refused():
    with pytest.raises(ValueError, match="4 offsets for 5 tensors"):
        ModelFile(dense_chain(SIZES)).with_plan([0] * 4)


def test_the_tensors_of_all_subgraphs_follow_each_other_in_the_plan():
    file = ModelFile(tiny_tflite(dense_subgraph(SIZES), dense_subgraph((8, 4))))
    offsets = [*OFFSETS, 96, 112, -1]
    assert plans(file.with_plan(offsets)) == [[1, 2, 8, *offsets]]
    assert [file.number(0, 4), file.number(1, 0), file.number(1, 2)] == [4, 5, 7]


def test_a_variable_tensor_of_an_inner_subgraph_is_refused():
    state = TinyTensor("state", (4,), variable=True)
    inner = TinySubgraph([TinyTensor("x"), state], [], [0], [0])
    with pytest.raises(UnsupportedModelError, match=r"'state': it is a variable .* subgraph 1"):
        ModelFile(tiny_tflite(dense_subgraph(SIZES), inner))
    ModelFile(tiny_tflite(inner, dense_subgraph(SIZES)))


def test_weights_behind_the_flatbuffer_are_refused():
    weights = TinyTensor("w", (4,), data=(4096, 4))
    data = tiny_tflite(TinySubgraph([weights, TinyTensor("x")], [], [1], [1]))
    with pytest.raises(UnsupportedModelError, match="behind the FlatBuffer"):
        ModelFile(data)


def test_a_model_of_one_operator_has_no_other(tmp_path: Path):
    file = ModelFile(dense_chain(SIZES))
    path = tmp_path / "one.tflite"
    path.write_bytes(file.of_operator((0, 1), [1], [2], 128, [0, 128, 144, -1, -1, 0]) + file.body)
    graph = read_tflite_model(path).program
    assert [operator.operator.label for operator in graph.steps] == ["FULLY_CONNECTED"]
    assert graph.input_tensors == ("x1", "filler")
    assert graph.output_tensors == ("x2", "filler")
    assert graph.tensors["filler"].size == 128


@given(position=st.integers(0, 10_000), value=st.integers(0, 255), cut=st.integers(0, 200))
def test_a_damaged_file_is_refused_or_rewritten_but_never_more(
    position: int, value: int, cut: int
):
    data = bytearray(tiny_tflite(dense_subgraph(SIZES), metadata={"a": b"b"}))
    data[position % len(data)] = value
    try:
        file = ModelFile(bytes(data[: len(data) - cut]))
        file.with_plan([0] * file.num_tensors)
    except (ModelFormatError, UnsupportedModelError):
        pass


def test_an_operator_entry_outside_the_file_is_refused():
    data = bytearray(
        tiny_tflite(TinySubgraph([TinyTensor("x")], [TinyOperator(0, [0], [])], [0], []))
    )
    data[0:4] = (2**31).to_bytes(4, "little")
    with pytest.raises(ModelFormatError, match="outside the file"):
        ModelFile(bytes(data))

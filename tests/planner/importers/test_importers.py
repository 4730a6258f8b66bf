import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from arenite.planner.errors import BindingError, ModelError, ModelFormatError
from arenite.planner.importers import load, model_format, open_names, read, read_csv
from arenite.planner.programs.rules import Boundary

ROWS = "id,lower,upper,size,alignment\nx,0,2,5,4\ny,1,3,7,8\n"


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "A.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")
    from support.tiny_tflite import TinyOperator, TinySubgraph, TinyTensor, tiny_tflite

    tensors = [TinyTensor("x", (1, 20)), TinyTensor("y", (1, 20)), TinyTensor("z", (1, 20))]
    chain = [TinyOperator(0, [0], [1]), TinyOperator(0, [1], [2])]
    path = tmp_path / "tiny.tflite"
    path.write_bytes(tiny_tflite(TinySubgraph(tensors, chain, [0], [2])))
    return path


def test_a_csv_has_no_graph_and_keeps_what_it_states(instance: Path) -> None:
    source = read(instance)
    assert source.program is None
    assert source.name == "A.csv"
    assert source.digest == hashlib.sha256(ROWS.encode()).hexdigest()
    assert source.problem.capacity is None
    assert [record.alignment for record in source.problem.records] == [4, 8]


def test_a_stated_alignment_and_capacity_win_over_the_csv(instance: Path) -> None:
    problem = read(instance, alignment=64, capacity=100).problem
    assert [record.alignment for record in problem.records] == [64, 64]
    assert problem.capacity == 100


def test_a_tflite_model_has_a_graph_whose_records_are_aligned_to_16(model: Path) -> None:
    source = read(model, capacity=4096)
    assert source.program is not None
    assert source.problem.capacity == 4096
    assert [(record.name, record.size) for record in source.problem.records] == [
        ("x", 32),
        ("y", 32),
        ("z", 32),
    ]


def test_boundary_and_alignment_reach_the_records(model: Path) -> None:
    problem = read(model, boundary=Boundary.EXCLUDE, alignment=4).problem
    assert [(record.name, record.size) for record in problem.records] == [("y", 20)]


def test_an_alignment_that_is_no_power_of_two_is_refused(model: Path, instance: Path) -> None:
    for path in (model, instance):
        with pytest.raises(ModelError, match="not a power of two"):
            read(path, alignment=24)


@pytest.mark.parametrize("name", ["tiny.lite", "tiny.TFLITE", "tiny.bin", "tiny"])
def test_a_tflite_model_is_known_by_suffix_or_content(model: Path, name: str) -> None:
    renamed = model.rename(model.with_name(name))
    assert read(renamed).program is not None


def test_an_onnx_model_is_read_by_its_importer(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    graph = onnx.parser.parse_graph("g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }")
    opset = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path / "tiny.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    problem = read(path, dims={"N": 2}).problem
    assert [record.size for record in problem.records] == [32, 32]


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(b"anything")
    with pytest.raises(ModelFormatError, match=r"\.onnx, \.tflite, \.lite, \.csv"):
        read(path)


def test_an_absent_file_a_folder_and_a_pipe_are_refused_with_the_reason(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for path, reason in (
        (tmp_path / "absent.onnx", "No such file"),
        (tmp_path, "not a regular file"),
        (pipe, "not a regular file"),
    ):
        with pytest.raises(ModelFormatError, match=reason):
            read(path)


def test_dims_and_shapes_have_nothing_to_bind_in_a_csv(instance: Path) -> None:
    with pytest.raises(BindingError, match="'N'"):
        read(instance, dims={"N": 1})
    with pytest.raises(BindingError, match="'x'"):
        read(instance, shapes={"x": (1,)})


def test_a_tflite_model_takes_shapes_of_its_inputs_alone(model: Path) -> None:
    for shape in ((1, 20), (2, 20)):
        program = read(model, shapes={"x": shape}).program
        assert program is not None
        assert program.tensors["x"].shape == shape
    with pytest.raises(BindingError, match="'y' is not an input of the model; known: 'x'"):
        read(model, shapes={"y": (1, 20)})
    with pytest.raises(BindingError, match="'N'"):
        read(model, dims={"N": 1})


def test_reading_a_csv_imports_no_format_package(instance: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from arenite.planner.importers import read; "
        "read(Path(sys.argv[1])); "
        "print(sorted({'onnx', 'onnxruntime', 'tflite', 'flatbuffers'} & set(sys.modules)))"
    )
    planner = Path(__file__).parents[3] / "planner"
    result = subprocess.run(
        [sys.executable, "-c", code, str(instance)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(planner)},
    )
    assert result.stdout == "[]\n"


def test_a_path_may_be_text(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,lower,upper,size\nx,0,1,2\n")
    assert read(str(path)).problem == read_csv(str(path)) == read(path).problem
    assert (model_format(str(path)), open_names(str(path))) == ("csv", (frozenset(), frozenset()))
    with pytest.raises(ModelFormatError, match=r"x\.onnx"):
        load(str(tmp_path / "x.onnx"))

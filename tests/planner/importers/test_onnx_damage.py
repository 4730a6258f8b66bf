"""Files that are not what they claim to be end in one clear error."""

import contextlib
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.errors import AreniteError, ModelFormatError, UnsupportedModelError
from arenite.planner.importers.onnx import read_onnx
from support.tiny_onnx import parse, read_text, save

SQUEEZENET = (
    Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_squeezenet.onnx"
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "not an ONNX model"),
        (b"Not a model, merely text.\n", "not an ONNX model"),
        (SQUEEZENET.read_bytes()[:5000], "truncated"),
        (onnx.ModelProto(ir_version=8).SerializeToString(), "no graph"),
    ],
    ids=["empty", "picture", "text", "truncated", "without a graph"],
)
def test_other_files_are_not_onnx_models(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=reason):
        read_onnx(path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a = Neg(b) b = Neg(a) y = Neg(a)", "cycle"),
        ("y = Neg(nowhere)", "'nowhere' is read, but no node writes it"),
        ("y = Neg(x) y = Abs(x)", "'y' is written twice"),
        ("x = Abs(x) y = Neg(x)", "'x' is written twice"),
        ("y = Conv(x)", "input size 1"),
        ("y = Neg <colour = 1> (x)", "Unrecognized attribute: colour"),
        ("y = MatMul(x, x)", "'MatMul_0' .*ncompatible dimensions"),
        ("y = LayerNormalization <axis = 9000000000000> (x, x)", "out of range for rank 2"),
        ("h = Neg(x)", "no node writes it"),
    ],
    ids=lambda value: value if "=" in value else "",
)
def test_a_graph_that_breaks_the_rules_is_refused(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(ModelFormatError, match=reason):
        read_text(tmp_path, f"(float[2, 3] x) => (y) {{ {body} }}")


def test_a_recurrent_layer_with_weights_for_other_features_is_refused(tmp_path: Path) -> None:
    text = """(float[5,1,8] x) => (y) <float[1,12,9] w, float[1,12,12] r>
        { y = RNN<hidden_size=12>(x, w, r) }"""
    with pytest.raises(ModelFormatError, match="'x' has 8 features, the weights 'w' are for 9"):
        read_text(tmp_path, text)


def test_operator_sets_too_old_or_too_new_are_refused(tmp_path: Path) -> None:
    text = "(float[2] x) => (y) { y = Neg(x) }"
    assert read_text(tmp_path, text, opset=7).steps
    assert read_text(tmp_path, text, opset=onnx.defs.onnx_opset_version()).steps
    with pytest.raises(UnsupportedModelError, match="older than 7"):
        read_text(tmp_path, text, opset=6)
    with pytest.raises(UnsupportedModelError, match="update"):
        read_text(tmp_path, text, opset=onnx.defs.onnx_opset_version() + 1)


@pytest.mark.parametrize("number", [-1, 1 << 31, 1 << 62])
@pytest.mark.parametrize("of", ["the file", "ONNX's operators", "others"])
def test_a_number_that_is_no_version_is_refused(tmp_path: Path, of: str, number: int) -> None:
    model = parse("(float[2] x) => (y) { y = Neg(x) }", microsoft=True)
    if of == "the file":
        model.ir_version = number
    else:
        model.opset_import[of == "others"].version = number
    with pytest.raises(ModelFormatError, match=f"version {number} is out of range"):
        read_onnx(save(tmp_path, model))


def test_a_constant_with_a_negative_dimension_is_refused(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (y) { y = Add(x, w) }")
    model.graph.initializer.add(name="w", dims=[-1], data_type=onnx.TensorProto.FLOAT)
    with pytest.raises(ModelFormatError, match="'w'"):
        read_onnx(save(tmp_path, model))


def test_of_constants_of_one_name_the_last_counts(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (y, w) { y = Add(x, w) }")
    model.graph.initializer.add(name="w", data_type=128)  # no type that there is
    model.graph.initializer.append(
        onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1, 2])
    )
    program = read_onnx(save(tmp_path, model), weights=True)
    assert sorted(program.tensors) == ["w", "x", "y"]
    assert program.constants["w"].tolist() == [1, 2]


def test_an_operator_is_not_tried_on_what_no_machine_has(tmp_path: Path) -> None:
    model = parse(f"(float[3,{1 << 41},7] x) => (y) {{ y, s, z = DynamicQuantizeLinear(x) }}")
    model.opset_import[0].domain = "elsewhere"  # so that onnx does not know the operator
    with pytest.raises(UnsupportedModelError, match="is too large for a trial run"):
        read_onnx(save(tmp_path, model))


def test_a_shape_of_more_axes_than_there_is_memory_for_is_refused(tmp_path: Path) -> None:
    model = parse(f"(int64[{1 << 32}] x) => (y) {{ y = ConstantOfShape(x) }}")
    model.opset_import[0].domain = "elsewhere"  # so that onnx does not know the operator
    with pytest.raises(UnsupportedModelError, match="is too large for a shape"):
        read_onnx(save(tmp_path, model))


def test_a_constant_with_fewer_bytes_than_its_shape_is_refused_where_it_is_needed(
    tmp_path: Path,
) -> None:
    model = parse("(float[4] x) => (y) { y = Reshape(x, target) }")
    model.graph.initializer.add(
        name="target", dims=[2], data_type=onnx.TensorProto.INT64, raw_data=b"\x01"
    )
    with pytest.raises(UnsupportedModelError, match=r"target.*cannot be read"):
        read_onnx(save(tmp_path, model))


def test_a_name_of_external_data_that_is_no_text_is_refused(tmp_path: Path) -> None:
    model = parse("(float[4] x) => (y) { y = Reshape(x, target) }")
    target = model.graph.initializer.add(name="target", dims=[2], data_type=7, data_location=1)
    target.external_data.add(key="location", value="w.bin")
    path = save(tmp_path, model)
    path.write_bytes(path.read_bytes().replace(b"w.bin", b"w\xffbin"))
    with pytest.raises(AreniteError, match="name of its external file is not UTF-8 text"):
        read_onnx(path)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), min_size=1, max_size=4))
def test_damage_anywhere_ends_in_an_error_of_ours_or_a_graph(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, int]]
) -> None:
    data = bytearray(SQUEEZENET.read_bytes())
    for position, value in damage:
        data[position % len(data)] = value
    path = tmp_path_factory.mktemp("damage") / "model.onnx"
    path.write_bytes(data)
    with contextlib.suppress(AreniteError):
        assert read_onnx(path).outputs

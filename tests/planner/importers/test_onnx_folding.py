"""What is known before the run becomes constant, and nothing else does."""

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.tensors import TensorKind
from support.tiny_onnx import parse, read_text, save

FLATTEN = """
    (float[N, 3, 4] x) => (y) <int64[1] zero = {0}, int64[1] rest = {-1}> {
        s = Shape(x)
        n = Gather(s, zero)
        target = Concat <axis = 0> (n, rest)
        y = Reshape(x, target)
    }
"""


def test_arithmetic_on_shapes_is_folded_away(tmp_path: Path) -> None:
    graph = read_text(tmp_path, FLATTEN, dims={"N": 5})
    assert [operator.operator.label for operator in graph.steps] == ["Reshape"]
    assert graph.tensors["y"].shape == (5, 12)
    assert graph.tensors["target"].kind is TensorKind.CONSTANT
    assert graph.notes == ("operators removed because their outputs are constants: 3",)


def test_folding_follows_c_where_integers_are_divided(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[8] x) => (y) <int64[1] two = {2}, int64[1] odd = {-9}, int64[1] begin = {0}> {
            end = Div(odd, two)
            y = Slice(x, begin, end)
        }
        """,
    )
    assert graph.tensors["y"].shape == (4,)


def test_the_value_of_a_graph_output_is_known_but_still_made(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path, "(float[2, 3] x, float[6] z) => (s, y) { s = Shape(x) y = Reshape(z, s) }"
    )
    assert [operator.operator.label for operator in graph.steps] == ["Shape", "Reshape"]
    assert graph.tensors["s"].kind is TensorKind.OUTPUT
    assert graph.tensors["y"].shape == (2, 3)


def test_a_copy_of_a_constant_to_a_graph_output_stays_a_copy(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path, "(float[2] x) => (y, z) <float[2] w> { y = Neg(x) z = Identity(w) }"
    )
    assert graph.tensors["z"].kind is TensorKind.OUTPUT
    assert graph.tensors["z"].alias is None


def test_weights_made_by_large_chains_are_constants(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[1, 1000] x) => (y) <int64[2] shape = {2000, 1000}> {
            w = ConstantOfShape(shape)
            turned = Transpose(w)
            y = MatMul(x, turned)
        }
        """,
    )
    assert [operator.operator.label for operator in graph.steps] == ["MatMul"]
    assert graph.tensors["turned"].kind is TensorKind.CONSTANT


def test_places_in_a_known_mask_are_counted(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[4, 3] x) => (y, z) <bool[4] mask = {1, 0, 1, 1}> {
            places = NonZero(mask)
            y = Gather <axis = 0> (x, places)
            kept = Compress(mask, mask)
            z = Cast <to = 1> (kept)
        }
        """,
    )
    assert graph.tensors["y"].shape == (1, 3, 3)
    assert graph.tensors["z"].shape == (3,)


@pytest.mark.parametrize("value", ["big", "made"])
def test_a_value_as_long_as_weights_is_not_worked_out(tmp_path: Path, value: str) -> None:
    with pytest.raises(UnsupportedModelError, match="depends on values of the run"):
        read_text(
            tmp_path,
            "(float[2] x) => (y, z) <float[70000] big, int64[1] length = {70000}> "
            f"{{ z = Neg(x) made = ConstantOfShape(length) y = NonZero({value}) }}",
        )


def test_a_node_that_is_only_asked_for_its_shape_is_dropped(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        "(float[2, 3] x, float[6] z) => (y) { h = Neg(x) s = Shape(h) y = Reshape(z, s) }",
    )
    assert [operator.operator.label for operator in graph.steps] == ["Reshape"]
    assert graph.input_tensors == ("x", "z")
    assert "operators removed because no output depends on them: 1" in graph.notes


def test_what_chance_decides_is_never_constant(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path, "(float[2] x) => (y) { r = RandomNormal <shape = [2]> () y = Add(x, r) }"
    )
    assert graph.tensors["r"].kind is TensorKind.ACTIVATION


def test_a_shape_that_only_the_run_computes_is_refused(tmp_path: Path) -> None:
    for text in (
        "(float[4] x) => (y) { y = Unique(x) }",
        "(float[4] x, int64[2] s) => (y) { y = Reshape(x, s) }",
    ):
        with pytest.raises(UnsupportedModelError, match="depends on values of the run") as caught:
            read_text(tmp_path, text)
        assert caught.value.culprit == "y"


def test_a_declared_shape_is_believed_where_none_can_be_inferred(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        "(float[N, 4] x, int64[2] s) => (float[4, N] y) { y = Reshape(x, s) }",
        dims={"N": 3},
    )
    assert graph.tensors["y"].shape == (4, 3)


def external(model: onnx.ModelProto, name: str, array: np.ndarray, folder: Path) -> None:
    """Add an initialiser whose bytes lie in a file of its own."""
    tensor = onnx.numpy_helper.from_array(array, name)
    (folder / f"{name}.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=f"{name}.bin")
    model.graph.initializer.append(tensor)


def test_external_data_are_read_only_where_a_shape_needs_them(tmp_path: Path) -> None:
    model = parse(
        "(float[6, 6] x) => (y) { h = MatMul(x, w) b = Add(h, bias) y = Reshape(b, target) }"
    )
    external(model, "w", np.ones((6, 4), np.float32), tmp_path)
    external(model, "bias", np.ones(4, np.float32), tmp_path)
    external(model, "target", np.array([2, -1]), tmp_path)
    (tmp_path / "w.bin").unlink()
    (tmp_path / "bias.bin").unlink()
    path = save(tmp_path, model)
    assert read_onnx(path).tensors["y"].shape == (2, 12)
    (tmp_path / "target.bin").unlink()
    with pytest.raises(UnsupportedModelError, match=r"target.*is missing; put it into"):
        read_onnx(path)


CONTRIB = """
    (float[1, 2, 6, 6] x) => (y) <float[3, 2, 3, 3] w> {
        c = com.microsoft.FusedConv <activation = "Relu", kernel_shape = [3, 3]> (x, w)
        y = GlobalAveragePool(c)
    }
"""


def test_operators_of_onnx_runtime_have_the_shapes_it_gives_them(tmp_path: Path) -> None:
    graph = read_text(tmp_path, CONTRIB, microsoft=True)
    assert graph.steps[0].operator.label == "com.microsoft.FusedConv"
    assert graph.tensors["c"].shape == (1, 3, 4, 4)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("(float[2, 3] a, float[2, 4] b) => (y) "
         "{ y = com.microsoft.FusedMatMul <transA = 1> (a, b) }", (3, 4)),
        ("(float[2, 8] a, float[8] b) => (y) { y = com.microsoft.BiasGelu(a, b) }", (2, 8)),
        ("(uint8[1, 4, 5, 5] a, float s, uint8 z) => (y) "
         "{ y = com.microsoft.QLinearGlobalAveragePool(a, s, z, s, z) }", (1, 4, 1, 1)),
        ("(uint8[3, 1] a, uint8[4] b, float s, uint8 z) => (y) "
         "{ y = com.microsoft.QLinearAdd(a, s, z, b, s, z, s, z) }", (3, 4)),
        ("(float16[1, 6, 6, 8] a, float16[16, 3, 3, 8] w) => (y) "
         "{ y = com.microsoft.NhwcFusedConv <kernel_shape = [3, 3]> (a, w) }", (1, 4, 4, 16)),
        ("(float[1, 2, 4] a, float[1, 2, 4] b, float[4] g) => (m, y) "
         '{ n, "", "", y = com.microsoft.SkipSimplifiedLayerNormalization(a, b, g) m = Neg(n) }',
         (1, 2, 4)),
        ("(float[2, 4] a, float[3, 4] b) => (y) "
         '{ y = com.microsoft.CDist <metric = "euclidean"> (a, b) }', (2, 3)),
        ("(float[2, 4] a, float[4] g) => (y) { y = SimplifiedLayerNormalization(a, g) }", (2, 4)),
    ],
    ids=["FusedMatMul", "BiasGelu", "QLinearGlobalAveragePool", "QLinearAdd", "NhwcFusedConv",
         "an output in between left out", "inferred by a run", "in the domain of onnx"],
)  # fmt: skip
def test_other_operators_of_onnx_runtime_are_typed_too(
    tmp_path: Path, text: str, shape: tuple[int, ...]
) -> None:
    assert read_text(tmp_path, text, microsoft=True).tensors["y"].shape == shape


@pytest.mark.parametrize(
    "text",
    [
        "(float[8] x) => (y) { y, i, n = com.microsoft.Unique(x) }",
        "(float start, float end) => (y) { y = com.microsoft.Range(start, end) }",
        "(float[2, 3] x, int32 axis) => (y) { y = com.microsoft.ExpandDims(x, axis) }",
    ],
    ids=["Unique", "Range", "ExpandDims"],
)
def test_a_run_on_made_up_values_is_not_believed_where_they_decide(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(UnsupportedModelError, match="depends on values of the run"):
        read_text(tmp_path, text, microsoft=True)


def test_an_operator_that_nobody_knows_is_refused_by_name(tmp_path: Path) -> None:
    text = CONTRIB.replace("FusedConv", "Nonsense")
    with pytest.raises(UnsupportedModelError, match=r"com\.microsoft\.Nonsense.*ONNX Runtime"):
        read_text(tmp_path, text, microsoft=True)
    with pytest.raises(UnsupportedModelError, match=r"Nonsense.*ONNX Runtime"):
        read_text(tmp_path, "(float[2] x) => (y) { y = Nonsense(x) }")


def test_onnx_runtime_is_asked_for_only_when_it_is_needed(tmp_path: Path, without) -> None:
    without("onnxruntime")
    assert read_text(tmp_path, FLATTEN, dims={"N": 1}).steps
    with pytest.raises(MissingDependencyError, match=r"com\.microsoft\.FusedConv") as caught:
        read_text(tmp_path, CONTRIB, microsoft=True)
    assert (caught.value.package, caught.value.extra) == ("onnxruntime", "onnx")

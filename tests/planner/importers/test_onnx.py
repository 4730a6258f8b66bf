"""What a graph read from ONNX holds: boundary, sizes, names, bindings, whole networks."""

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import pytest

from arenite.planner.errors import (
    BindingError,
    MissingDependencyError,
    ModelFormatError,
    UnboundDimensionError,
    UnsupportedModelError,
)
from arenite.planner.importers import load
from arenite.planner.importers.onnx import read_onnx
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.tensors import DType, TensorKind
from support.shared_material import shared
from support.tiny_onnx import parse, read_text, save

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def op_types(graph: Program) -> list[str]:
    return [operator.operator.label for operator in graph.steps]


def test_a_chain_has_its_boundary_its_activations_and_its_weights(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path, "(float[2, 3] x) => (y) <float[3, 4] w> { h = Relu(x) [last] y = MatMul(h, w) }"
    )
    kinds = {name: tensor.kind for name, tensor in graph.tensors.items()}
    assert kinds == {
        "x": TensorKind.INPUT,
        "h": TensorKind.ACTIVATION,
        "w": TensorKind.CONSTANT,
        "y": TensorKind.OUTPUT,
    }
    assert graph.tensors["y"].shape == (2, 4)
    assert (graph.name, graph.input_tensors, graph.output_tensors) == ("tiny", ("x",), ("y",))
    assert [operator.name for operator in graph.steps] == ["Relu_0", "last"]
    assert graph.notes == ()


def test_names_used_twice_are_made_unique_and_given_ones_stay(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        "(float[2] x) => (y) { a = Relu(x) [n] b = Neg(a) [n] c = Neg(b) [Relu_0] y = Abs(c) }",
    )
    assert [operator.name for operator in graph.steps] == ["Relu_0.2", "n", "n.2", "Relu_0"]


def test_an_initialiser_listed_among_the_inputs_is_a_constant(tmp_path: Path) -> None:
    model = parse("(float[2] x, float[2] w) => (y) { y = Add(x, w) }", opset=7)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "w"))
    graph = read_onnx(save(tmp_path, model))
    assert graph.input_tensors == ("x",)
    assert graph.tensors["w"].kind is TensorKind.CONSTANT


def test_a_sparse_initialiser_is_a_constant_of_its_dense_shape(tmp_path: Path) -> None:
    model = parse("(float[2, 8] x) => (y) { y = MatMul(x, w) }")
    sparse = model.graph.sparse_initializer.add(dims=[8, 5])
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(np.ones(1, np.float32), "w"))
    sparse.indices.CopyFrom(onnx.numpy_helper.from_array(np.zeros(1, np.int64)))
    graph = read_onnx(save(tmp_path, model))
    assert graph.tensors["w"].shape == (8, 5)
    assert graph.tensors["y"].shape == (2, 5)


@pytest.mark.parametrize(
    ("written", "dtype", "size"),
    [
        ("int4", DType.INT4, 3),
        ("uint4", DType.UINT4, 3),
        ("float4e2m1", DType.FLOAT4E2M1, 3),
        ("bool", DType.BOOL, 5),
        ("float8e4m3fn", DType.FLOAT8E4M3FN, 5),
        ("float16", DType.FLOAT16, 10),
        ("bfloat16", DType.BFLOAT16, 10),
        ("double", DType.FLOAT64, 40),
    ],
)
def test_every_element_type_has_its_size(
    tmp_path: Path, written: str, dtype: DType, size: int
) -> None:
    graph = read_text(tmp_path, f"({written}[5] x) => (y) {{ y = Identity(x) }}", opset=23)
    assert (graph.tensors["y"].dtype, graph.tensors["y"].size) == (dtype, size)


@pytest.mark.skipif("INT2" not in dict(onnx.TensorProto.DataType.items()), reason="old onnx")
def test_two_bit_elements_are_packed_four_to_a_byte(tmp_path: Path) -> None:
    model = parse("(int4[5] x) => (y) { y = Identity(x) }", opset=25)
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT2
    assert read_onnx(save(tmp_path, model)).tensors["y"].size == 2


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("string[2]", "type string"),
        ("seq(float[2])", "sequence"),
        ("optional(float[2])", "optional"),
    ],
)
def test_values_without_a_fixed_size_are_refused_by_name(
    tmp_path: Path, written: str, reason: str
) -> None:
    with pytest.raises(UnsupportedModelError, match=reason) as caught:
        read_text(tmp_path, f"({written} labels) => (y) {{ y = Identity(labels) }}")
    assert caught.value.culprit == "labels"


def test_a_sequence_inside_the_graph_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="sequence") as caught:
        read_text(
            tmp_path,
            "(float[4] x, int64 i) => (y) { parts = SplitToSequence(x) y = SequenceAt(parts, i) }",
        )
    assert caught.value.culprit == "parts"


def test_string_constants_matter_only_where_they_are_read(tmp_path: Path) -> None:
    text = '(float[2] x) => (y) <string[1] s = {"label"}> { y = Neg(x) unused = Identity(s) }'
    assert op_types(read_text(tmp_path, text)) == ["Neg"]
    with pytest.raises(UnsupportedModelError, match="type string"):
        read_text(tmp_path, text.replace("=> (y)", "=> (y, unused)"))


def test_tensors_without_elements_are_allowed(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path, "(float[0, 3] x, float[2, 3] z) => (y) { y = Concat <axis = 0> (x, z) }"
    )
    assert graph.tensors["x"].size == 0
    assert graph.tensors["y"].shape == (2, 3)


def test_a_named_dimension_is_bound_everywhere_it_occurs(tmp_path: Path) -> None:
    text = "(float[N, 3] x, float[3, N] z) => (float[N, N] y) { y = MatMul(x, z) }"
    assert read_text(tmp_path, text, dims={"N": 5}).tensors["y"].shape == (5, 5)
    assert read_text(tmp_path, text, shapes={"x": (7, 3)}).tensors["y"].shape == (7, 7)


def test_a_dimension_without_a_name_goes_by_input_and_axis(tmp_path: Path) -> None:
    text = "(float[?, 3] x) => (y) { y = Neg(x) }"
    assert read_text(tmp_path, text, dims={"x:0": 5}).tensors["y"].shape == (5, 3)
    assert read_text(tmp_path, text, shapes={"x": (4, 3)}).tensors["y"].shape == (4, 3)


def test_all_free_dimensions_are_named_with_the_options_that_bind_them(tmp_path: Path) -> None:
    with pytest.raises(UnboundDimensionError) as caught:
        read_text(tmp_path, "(float[batch, 3, ?] x, float[3] z) => (y) { y = Identity(x) }")
    assert caught.value.dimensions == ("batch", "x:2")
    assert "--dim batch=1 --dim x:2=1" in str(caught.value)
    assert "--shape x=1x3x1" in str(caught.value)


def test_the_sizes_that_are_proposed_for_an_image_are_not_a_single_pixel(tmp_path: Path) -> None:
    with pytest.raises(UnboundDimensionError) as caught:
        read_text(tmp_path, "(float[batch, 3, ?, w] x) => (y) { y = Identity(x) }")
    assert "--shape x=1x3x224x224" in str(caught.value)
    assert "--dim batch=1 --dim w=224 --dim x:2=224" in str(caught.value)


def test_an_input_without_a_rank_needs_its_whole_shape(tmp_path: Path) -> None:
    model = parse("(float[2] x) => (y) { y = Neg(x) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    path = save(tmp_path, model)
    with pytest.raises(UnboundDimensionError, match="--shape x="):
        read_onnx(path)
    assert read_onnx(path, shapes={"x": (6, 7)}).tensors["y"].shape == (6, 7)


@pytest.mark.parametrize(
    ("dims", "shapes", "message"),
    [
        ({"M": 1}, {}, "'M' is not a free dimension of the model; known: 'N'"),
        ({}, {"w": (2,)}, "'w' is not an input of the model; known: 'x'"),
        ({"N": -1}, {}, "at least 0"),
        ({}, {"x": (-1, 3)}, "at least 0"),
        ({}, {"x": (1, 3, 1)}, "2 dimensions"),
        ({}, {"x": (1, 4)}, "has length 3 on axis 1, not 4"),
        ({"N": 1}, {"x": (2, 3)}, "cannot be both 2 and 1"),
    ],
)
def test_a_binding_that_does_not_fit_is_refused(
    tmp_path: Path, dims: dict[str, int], shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(BindingError, match=message):
        read_text(tmp_path, "(float[N, 3] x) => (y) { y = Neg(x) }", dims=dims, shapes=shapes)


def test_a_free_dimension_may_be_0(tmp_path: Path) -> None:
    text = "(float[past, 3] x, float[1, 3] z) => (y) { y = Concat<axis=0>(x, z) }"
    graph = read_text(tmp_path, text, dims={"past": 0})
    assert graph.tensors["x"].size == 0


def test_dead_nodes_are_dropped_and_counted(tmp_path: Path) -> None:
    graph = read_text(tmp_path, "(float[2] x) => (y) { y = Neg(x) a = Abs(x) b = Nope(a) }")
    assert op_types(graph) == ["Neg"]
    assert graph.notes == ("operators removed because no output depends on them: 2",)


def test_nodes_out_of_order_are_sorted_and_others_stay_where_they_are(tmp_path: Path) -> None:
    text = "(float[2] x) => (y) { y = Add(b, c) b = Neg(a) c = Abs(x) a = Relu(x) }"
    assert op_types(read_text(tmp_path, text)) == ["Abs", "Relu", "Neg", "Add"]
    ordered = "(float[2] x) => (y) { b = Neg(x) a = Abs(x) c = Relu(a) y = Add(b, c) }"
    assert op_types(read_text(tmp_path, ordered)) == ["Neg", "Abs", "Relu", "Add"]


def test_optional_outputs_that_nobody_reads_are_left_out(tmp_path: Path) -> None:
    text = "(float[1, 1, 4] x) => (y) { y, places = MaxPool <kernel_shape = [2]> (x) }"
    assert read_text(tmp_path, text).steps[0].outputs == ("y", "")
    both = read_text(tmp_path, text.replace("=> (y)", "=> (y, places)"))
    assert both.tensors["places"].size == 24


def test_dropout_costs_nothing_but_its_mask(tmp_path: Path) -> None:
    for opset, mask in ((7, DType.FLOAT32), (13, DType.BOOL)):
        graph = read_text(
            tmp_path, "(float[6] x) => (y, m) { h = Neg(x) y, m = Dropout(h) }", opset=opset
        )
        assert graph.root("y") == ("h", 0)
        assert graph.tensors["m"].dtype is mask


def test_dropout_in_training_mode_is_refused(tmp_path: Path) -> None:
    text = "(float[6] x) => (y) <float r = {0.5}, bool t = {TRUE}> { y = Dropout(x, r, t) }"
    with pytest.raises(UnsupportedModelError, match="training"):
        read_text(tmp_path, text.replace("TRUE", "1"))
    assert read_text(tmp_path, text.replace("TRUE", "0")).tensors["y"].alias is not None


def test_attributes_that_are_numbers_or_text_are_kept(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        '(float[1, 1, 4] x) => (y) { y = AveragePool <kernel_shape = [2], auto_pad = "VALID", '
        "ceil_mode = 0> (x) }",
    )
    assert graph.steps[0].operator.attributes == {
        "kernel_shape": (2,),
        "auto_pad": "VALID",
        "ceil_mode": 0,
    }


def test_an_input_that_is_an_output_stays_an_input(tmp_path: Path) -> None:
    graph = read_text(tmp_path, "(float[2] x, float[2] z) => (x, y) { y = Neg(z) }")
    assert graph.output_tensors == ("x", "y")
    assert graph.tensors["x"].kind is TensorKind.INPUT


def test_the_models_own_functions_are_inlined(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        tiny (float[2] x) => (y) { y = own.twice(x) }
        <domain: "own", opset_import: ["" : 17]>
        twice (a) => (b) { c = Neg(a) b = Neg(c) }
        """
    )
    assert op_types(read_onnx(save(tmp_path, model))) == ["Neg", "Neg"]


def test_the_onnx_package_is_asked_for_when_it_is_absent(tmp_path: Path, without) -> None:
    without("onnx", forget=["arenite.planner.importers.onnx"])
    with pytest.raises(MissingDependencyError) as caught:
        load(tmp_path / "model.onnx")
    assert (caught.value.package, caught.value.extra) == ("onnx", "onnx")


@pytest.mark.parametrize("path", sorted(LIGHT.glob("light_*.onnx")), ids=lambda path: path.stem)
def test_the_light_networks_have_the_shapes_onnx_infers_and_no_weights(path: Path) -> None:
    graph = read_onnx(path)
    inferred = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True).graph
    shapes = {
        value.name: tuple(dimension.dim_value for dimension in value.type.tensor_type.shape.dim)
        for value in (*inferred.value_info, *inferred.output)
    }
    written = [name for operator in graph.steps for name in operator.writes]
    assert {name: graph.tensors[name].shape for name in written} == {n: shapes[n] for n in written}
    assert not any("ConstantOfShape" in operator.operator.label for operator in graph.steps)
    assert liveness(graph).lower_bound < liveness(graph).naive


@pytest.mark.parametrize(
    ("file", "dims"),
    [
        ("ultraface_rfb320.onnx", {}),
        ("openseeface_lm_model0_opt.onnx", {"batch_size": 1}),
        ("silero_vad_16k_op15.onnx", {"batch": 1, "sequence": 576}),
    ],
)
def test_trained_models_have_the_shapes_of_a_real_run(file: str, dims: dict[str, int]) -> None:
    path = shared(f"models/onnx/{file}")
    graph = read_onnx(path, dims=dims)
    model = onnx.load(path)
    outermost = {name for node in model.graph.node for name in node.output}
    names = [n for operator in graph.steps for n in operator.writes if n in outermost]
    assert len(names) > 30
    declared = {output.name for output in model.graph.output}
    model.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in names if name not in declared
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {
        name: np.zeros(graph.tensors[name].shape, graph.tensors[name].dtype.label)
        for name in graph.input_tensors
    }
    for name, result in zip(names, session.run(names, feeds), strict=True):
        tensor = graph.tensors[name]
        assert (name, tensor.shape, tensor.dtype.label) == (name, result.shape, result.dtype.name)


@pytest.mark.parametrize(
    "call", ["Conv(x, w)", "MaxPool<kernel_shape=[5,5]>(x)", "AveragePool<kernel_shape=[5,5]>(x)"]
)
def test_a_window_larger_than_its_input_is_refused_with_the_shape(
    call: str, tmp_path: Path
) -> None:
    model = parse(f"(float[1,3,2,2] x) => (float[n,c,h,w] y) <float[3,3,5,5] w> {{ y = {call} }}")
    with pytest.raises(ModelFormatError, match=r"output 'y' would have shape \[1, 3, -2, -2\]"):
        load(save(tmp_path, model))


ENSEMBLE = (
    'nodes_treeids=[0], nodes_nodeids=[0], nodes_featureids=[0], nodes_modes=["LEAF"], '
    "nodes_values=[0.0], nodes_truenodeids=[0], nodes_falsenodeids=[0], class_treeids=[0], "
    "class_nodeids=[0], class_ids=[0], class_weights=[1.0]"
)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("y = ai.onnx.ml.ZipMap<classlabels_int64s=[4,5]>(x)",
         r"'y': sequence type; .*'ZipMap_0' \(ai.onnx.ml.ZipMap\) makes it: .*'zipmap': False"),
        (f'y, p = ai.onnx.ml.TreeEnsembleClassifier<classlabels_strings=["a"], {ENSEMBLE}>(x)',
         r"'y': element type string is .*'TreeEnsembleClassifier_0' .*with integers as labels"),
    ],
)  # fmt: skip
def test_results_that_are_no_tensors_of_numbers_are_refused_with_their_operator(
    call: str, reason: str, tmp_path: Path
) -> None:
    model = parse(f"(float[8,2] x) => (y) {{ {call} }}")
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
    with pytest.raises(UnsupportedModelError, match=reason):
        load(save(tmp_path, model))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("Reshape", r"its input has shape \[2, 3\], output 'y' would have shape \[4, 5\]"),
        ("Expand", "Incompatible dimensions"),
    ],
)
def test_a_shape_that_the_input_cannot_take_is_refused(
    call: str, reason: str, tmp_path: Path
) -> None:
    model = parse(f"(float[2,3] x) => (y) <int64[2] s = {{4, 5}}> {{ y = {call}(x, s) }}")
    with pytest.raises(ModelFormatError, match=reason):
        load(save(tmp_path, model))

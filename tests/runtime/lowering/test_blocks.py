"""Weights of 4 and 8 bits in blocks, as ONNX and ONNX Runtime write them."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from arenite.pipeline.targets.compiling import lower_model
from arenite.runtime.operators import BlockGather, BlockProduct
from support.running import (
    PoisonedSession,
    assert_agrees,
    assert_same,
    build,
    random_feeds,
    reference_outputs,
)
from support.tiny_onnx import save

RNG = np.random.default_rng(7)


def model(nodes, inputs, output, arrays, integers=()):
    """Return a model with one output of floats.

    Args:
        nodes: Its nodes.
        inputs: Name, type and shape of each input.
        output: Shape of the output y.
        arrays: Constants by name.
        integers: Constants of few bits: name, type, array.
    """
    constants = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    constants += [
        helper.make_tensor(name, kind, each.shape, each.ravel().tolist())
        for name, kind, each in integers
    ]
    graph = helper.make_graph(
        nodes,
        "blocks",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
        constants,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def matmul_of_bits(rows, k, n, bits, block, zeros=None, *, has_bias=False, **attributes):
    """Return a model of one MatMulNBits."""
    blocks = -(-k // block)
    arrays = {
        "b": RNG.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8),
        "s": RNG.random(n * blocks, dtype=np.float32) / 10,
    }
    if zeros == "bytes":
        arrays["z"] = RNG.integers(0, 256, n * -(-blocks * bits // 8), dtype=np.uint8)
    elif zeros == "floats":
        arrays["z"] = RNG.random(n * blocks, dtype=np.float32) * 15
    if has_bias:
        arrays["c"] = RNG.random(n, dtype=np.float32)
    names = ["x", "b", "s", "z" if zeros else "", "", "c" if has_bias else ""]
    while not names[-1]:
        names.pop()
    node = helper.make_node(
        "MatMulNBits", names, ["y"], domain="com.microsoft", K=k, N=n, bits=bits,
        block_size=block, **attributes,
    )  # fmt: skip
    return model([node], [("x", TensorProto.FLOAT, (*rows, k))], (*rows, n), arrays)


@pytest.mark.parametrize(
    ("rows", "k", "n", "bits", "block", "zeros"),
    [
        ((1,), 64, 48, 4, 16, None),
        ((1, 7), 100, 37, 4, 32, "bytes"),
        ((2, 3), 70, 65, 4, 64, "floats"),
        ((1, 101), 256, 40, 4, 128, "bytes"),
        ((1, 1), 300, 130, 8, 256, None),
        ((5,), 96, 17, 8, 32, "bytes"),
    ],
)
def test_a_product_with_weights_in_blocks(rows, k, n, bits, block, zeros, tmp_path):
    made = matmul_of_bits(rows, k, n, bits, block, zeros, has_bias=n % 2 == 1)
    path = save(tmp_path, made)
    assert_agrees(path, tmp_path, backends={"arenite"})
    (step,) = lower_model(path).program.steps
    assert step.operator == BlockProduct(bits=bits, block=block)


def test_scales_of_16_bits_are_kept_as_such(tmp_path):
    made = matmul_of_bits((3,), 64, 32, 4, 32, "bytes")
    (scales,) = (each for each in made.graph.initializer if each.name == "s")
    narrow = numpy_helper.to_array(scales).astype(np.float16).astype(np.float32)
    scales.CopyFrom(numpy_helper.from_array(narrow, "s"))
    path = save(tmp_path, made)
    program = lower_model(path).program
    assert program.tensors[program.steps[0].inputs[2]].dtype.label == "float16"
    assert_agrees(path, tmp_path, backends={"arenite"})


def test_an_order_of_the_inputs_is_left_to_onnx_runtime(tmp_path):
    made = matmul_of_bits((3,), 64, 32, 4, 32)
    made.graph.node[0].input.extend(["", "g"])
    made.graph.initializer.append(
        numpy_helper.from_array(np.arange(64, dtype=np.int32) // 32, "g")
    )
    with PoisonedSession(build(save(tmp_path, made), tmp_path)) as session:
        assert "onnxruntime" in session.backends()


def unoptimised(path, feeds):
    """Return what ONNX Runtime makes without its optimiser, which would round the rows too."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    return {"y": session.run(None, feeds)[0]}


def test_rows_are_rounded_where_the_model_allows_it(tmp_path):
    made = matmul_of_bits((1, 7), 128, 40, 4, 32, "bytes", accuracy_level=4)
    path = save(tmp_path, made)
    (step,) = lower_model(path).program.steps
    assert step.operator == BlockProduct(bits=4, block=32, rounds=True)
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        rounded = session.run(feeds)
        # ONNX Runtime rounds rows where its build has a kernel for it.
        assert_same(rounded, reference_outputs(path, feeds), 0.02)
    (level,) = (each for each in made.graph.node[0].attribute if each.name == "accuracy_level")
    level.i = 1
    with PoisonedSession(build(save(tmp_path, made), tmp_path)) as session:
        exact = session.run(feeds)
    assert_same(rounded, exact, 0.02)
    assert np.abs(rounded["y"] - exact["y"]).max() > 1e-4 * np.abs(exact["y"]).max()


@pytest.mark.parametrize("form", ["MatMul", "Gemm", "Gather"])
@pytest.mark.parametrize("scales", ["a row", "all"])
def test_bytes_with_a_scale_for_each_row_stay_coded(form, scales, tmp_path):
    along = 1 if form == "MatMul" else 0  # the axis of outputs
    weights = RNG.integers(-128, 128, (300, 24) if form == "MatMul" else (24, 300))
    count = (24,) if scales == "a row" else ()
    arrays = {"s": RNG.random(count, dtype=np.float32)}
    nodes = [helper.make_node("DequantizeLinear", ["q", "s"], ["w"], axis=along)]
    inputs, output = [("x", TensorProto.FLOAT, (5, 300))], (5, 24)
    if form == "MatMul":
        nodes.append(helper.make_node("MatMul", ["x", "w"], ["y"]))
    elif form == "Gemm":
        nodes.append(helper.make_node("Gemm", ["x", "w"], ["y"], transB=1))
    else:
        nodes.append(helper.make_node("Gather", ["w", "x"], ["y"]))
        inputs, output = [("x", TensorProto.INT64, (2, 3))], (2, 3, 300)
    made = model(nodes, inputs, output, arrays, [("q", TensorProto.INT8, weights)])
    path = save(tmp_path, made)
    program = lower_model(path).program
    assert isinstance(program.steps[0].operator, BlockGather if form == "Gather" else BlockProduct)
    assert sum(each.nbytes for each in program.constants.values()) < 2 * weights.size
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), unoptimised(path, feeds), 1e-5)


INTEGERS = {
    "int4": (TensorProto.INT4, -8, 8),
    "uint4": (TensorProto.UINT4, 0, 16),
    "int8": (TensorProto.INT8, -128, 128),
}


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("form", ["MatMul", "Gemm", "transposed", "Gather"])
def test_dequantised_blocks_stay_coded(kind, form, tmp_path):
    dtype, low, high = INTEGERS[kind]
    along = 0 if form == "MatMul" else 1
    shape = (64, 24) if form == "MatMul" else (24, 64)
    weights = RNG.integers(low, high, shape)
    counts = (2, 24) if form == "MatMul" else (24, 2)
    arrays = {"s": RNG.random(counts, dtype=np.float32)}
    integers = [("q", dtype, weights)]
    names = ["q", "s"]
    if kind != "int4":
        integers.append(("z", dtype, RNG.integers(low, high, counts)))
        names.append("z")
    nodes = [helper.make_node("DequantizeLinear", names, ["w"], axis=along, block_size=32)]
    inputs, output = [("x", TensorProto.FLOAT, (5, 64))], (5, 24)
    if form == "MatMul":
        nodes.append(helper.make_node("MatMul", ["x", "w"], ["y"]))
    elif form == "Gemm":
        arrays["c"] = RNG.random(24, dtype=np.float32)
        nodes.append(helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=1, beta=0.5))
    elif form == "transposed":
        nodes.append(helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["x", "t"], ["y"]))
    else:
        nodes.append(helper.make_node("Gather", ["w", "x"], ["y"]))
        inputs, output = [("x", TensorProto.INT64, (2, 3))], (2, 3, 64)
    path = save(tmp_path, model(nodes, inputs, output, arrays, integers))
    operators = [type(step.operator) for step in lower_model(path).program.steps]
    assert operators == [BlockGather if form == "Gather" else BlockProduct]
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), unoptimised(path, feeds), 1e-5)


@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("kind", ["int4", "uint4", "uint8"])
def test_rows_of_a_table_in_blocks(kind, has_zeros, tmp_path):
    width = 32 if kind == "uint8" else 64  # two to a byte
    types = {**INTEGERS, "uint8": (TensorProto.UINT8, 0, 256)}
    dtype, low, high = types[kind]
    integers = [("q", dtype, RNG.integers(low, high, (40, width)))]
    arrays = {"s": RNG.random((40, 2), dtype=np.float32)}
    names = ["q", "x", "s"]
    if has_zeros:
        count = 1 if kind == "uint8" else 2
        integers.append(("z", dtype, RNG.integers(low, high, (40, count))))
        names.append("z")
    node = helper.make_node(
        "GatherBlockQuantized", names, ["y"], domain="com.microsoft", block_size=32,
        quantize_axis=1,
    )  # fmt: skip
    path = save(
        tmp_path, model([node], [("x", TensorProto.INT64, (7,))], (7, 64), arrays, integers)
    )
    feeds = {"x": np.array([0, 39, 3, -1, 16, 15, 31])}
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" not in session.backends()
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-6)

"""64-bit floats, as tree ensembles have them, beside ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from support.running import PoisonedSession, build
from support.tiny_onnx import parse, save

GENERATOR = np.random.default_rng(4)


def trees(kind, *, casts):
    """A model of one tree of doubles: x[0] <= 0.1 ? 1 : (x[1] <= -0.2 ? 2 : 3)."""
    is_regressor = kind == "TreeEnsembleRegressor"
    part = "target" if is_regressor else "class"
    wide = {} if casts else {
        "nodes_values_as_tensor": helper.make_tensor(
            "v", TensorProto.DOUBLE, [5], [0.1, 0, -0.2, 0, 0])}  # fmt: skip
    node = helper.make_node(
        kind, ["f" if casts else "x"], ["y"] if is_regressor else ["y", "p"],
        domain="ai.onnx.ml", nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4],
        nodes_featureids=[0, 0, 1, 0, 0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 3, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 0],
        **(wide or {"nodes_values": [0.1, 0.0, -0.2, 0.0, 0.0]}),
        **{f"{part}_treeids": [0] * 3, f"{part}_nodeids": [1, 3, 4]},
        **({"target_ids": [0] * 3, "n_targets": 1} if is_regressor
           else {"class_ids": [0, 1, 2], "classlabels_int64s": [4, 5, 6]}),
        **({f"{part}_weights_as_tensor": helper.make_tensor("w", TensorProto.DOUBLE, [3],
                                                            [1, 2, 3])}
           if wide else {f"{part}_weights": [1.0, 2.0, 3.0]}),
    )  # fmt: skip
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)] if casts else []
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 1])]
    if not is_regressor:
        outputs = [
            helper.make_tensor_value_info("y", TensorProto.INT64, [8]),
            helper.make_tensor_value_info("p", TensorProto.FLOAT, [8, 3]),
        ]
    graph = helper.make_graph(
        [*nodes, node], "trees",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [8, 2])], outputs,
    )  # fmt: skip
    return helper.make_model(
        graph, ir_version=8,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)],
    )  # fmt: skip


def assert_as_onnx_runtime(path, folder):
    session, peer = PoisonedSession(build(path, folder)), onnxruntime.InferenceSession(path)
    for _ in range(3):
        inputs = {
            port.name: (GENERATOR.standard_normal(port.shape) * 4).astype(port.dtype)
            for port in session.inputs
        }
        for own, other in zip(session.run(inputs).values(), peer.run(None, inputs), strict=True):
            assert own.dtype == other.dtype
            np.testing.assert_array_equal(own, other)
    return set(session.backends())


@pytest.mark.parametrize("kind", ["TreeEnsembleRegressor", "TreeEnsembleClassifier"])
@pytest.mark.parametrize("casts", [False, True])
def test_trees_take_doubles(kind, casts, tmp_path):
    assert_as_onnx_runtime(save(tmp_path, trees(kind, casts=casts)), tmp_path)


DOUBLES = {
    "to floats": "(double[3,50] x) => (float[3,50] y) { y = Cast<to=1>(x) }",
    "to halves": "(double[3,50] x) => (float16[3,50] y) { y = Cast<to=10>(x) }",
    "to integers": "(double[3,50] x) => (int64[3,50] y) { y = Cast<to=7>(x) }",
    "to truths": "(double[3,50] x) => (bool[3,50] y) { y = Cast<to=9>(x) }",
    "from floats": "(float[3,50] x) => (double[3,50] y) { y = Cast<to=11>(x) }",
    "moved": "(double[3,50] x) => (double[5,30] y) <int64[2] s = {5, 30}> "
             "{ t = Transpose<perm=[1,0]>(x) y = Reshape(t, s) }",
    "computed by ONNX Runtime": "(double[3,50] x) => (double[3,50] y) "
                                "{ e = Exp(x) t = Add(e, x) y = Relu(t) }",
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBLES)
def test_doubles_are_those_of_onnx_runtime(name, tmp_path):
    kinds = assert_as_onnx_runtime(save(tmp_path, parse(DOUBLES[name])), tmp_path)
    assert kinds == {"onnxruntime" if name.startswith("computed") else "arenite"}

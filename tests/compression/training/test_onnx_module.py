from typing import TYPE_CHECKING

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
pytest.importorskip("onnx2torch", reason="the extra 'train' is not installed")
onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

from arenite.compression.training import Schedule, fine_tune, trainable  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from arenite.planner.errors import UnsupportedModelError  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float32]]


def model_of(weights: "Arrays", nodes: "list[onnx.NodeProto]") -> "onnx.ModelProto":
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(each, name) for name, each in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def weights_of_three_layers() -> "Arrays":
    """Biases are equal and a matrix is square: only marks tell what is where."""
    generator = np.random.default_rng(4)
    shapes = {"first": (16, 6), "second": (6, 6), "third": (6, 3)}
    weights = {
        name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()
    }
    return weights | {name: np.zeros(6, np.float32) for name in ("bias_1", "bias_2")}


def three_layers(weights: "Arrays") -> "onnx.ModelProto":
    return model_of(weights, [
        helper.make_node("Gemm", ["x", "first", "bias_1"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "second", "bias_2"], ["c"], transB=1),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "third"], ["y"]),
    ])  # fmt: skip


def outputs(model: "onnx.ModelProto", inputs: "NDArray[np.float32]") -> "NDArray[np.float32]":
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found: NDArray[np.float32] = session.run(None, {"x": inputs})[0]
    return found


def test_a_module_computes_what_the_model_does_and_gives_its_weights_back() -> None:
    weights = weights_of_three_layers()
    model = three_layers(weights)
    found = trainable(model)
    inputs = np.random.default_rng(5).normal(size=(7, 16)).astype(np.float32)
    with torch.no_grad():
        computed = found.module(torch.from_numpy(inputs)).numpy()
    assert computed == pytest.approx(outputs(model, inputs), abs=1e-4)
    back = found.weights(found.module)
    assert back.keys() == weights.keys()
    assert all(np.array_equal(back[name], weights[name]) for name in weights)


def test_trained_weights_go_back_to_their_initialisers(
    images: "tuple[torch.Tensor, torch.Tensor]",
) -> None:
    weights = weights_of_three_layers()
    found = trainable(three_layers(weights))
    masks = {name: np.abs(weights[name]) > 0.5 for name in ("first", "second", "third")}
    data = (images[0].flatten(1), images[1])
    tuned = fine_tune(found.module, found.by_parameter(masks), data, Schedule(3, 1e-2, 16))
    trained = found.weights(tuned.model)
    for name, mask in masks.items():
        assert np.array_equal(trained[name] != 0, mask)
        assert not np.array_equal(trained[name], weights[name] * mask)
    assert not np.array_equal(trained["bias_1"], trained["bias_2"])
    with torch.no_grad():
        computed = tuned.model(data[0]).numpy()
    rebuilt = outputs(three_layers(trained), data[0].numpy())
    assert rebuilt == pytest.approx(computed, abs=1e-4)


def test_weights_used_twice_are_frozen() -> None:
    weights = weights_of_three_layers()
    del weights["bias_1"], weights["bias_2"]
    model = model_of(weights, [
        helper.make_node("Gemm", ["x", "first"], ["a"]),
        helper.make_node("Gemm", ["a", "second"], ["b"]),
        helper.make_node("Gemm", ["b", "second"], ["c"]),
        helper.make_node("MatMul", ["c", "third"], ["y"]),
    ])  # fmt: skip
    found = trainable(model)
    parameters = found.module.named_parameters()
    trained = {found.sources[name] for name, each in parameters if each.requires_grad}
    assert trained == {"first", "third"}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (helper.make_node("Det", ["x"], ["y"]), "cannot be trained"),
        (helper.make_node("Gemm", ["x", "w"], ["y"], alpha=2.0), "product of weights"),
    ],
)
def test_what_cannot_be_trained_is_refused(node: "onnx.NodeProto", reason: str) -> None:
    model = model_of({"w": np.ones((16, 3), np.float32)}, [node])
    with pytest.raises(UnsupportedModelError, match=reason):
        trainable(model, "m.onnx")

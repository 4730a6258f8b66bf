from typing import TYPE_CHECKING

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from arenite.compression.training import Schedule, fine_tune, trainable  # noqa: E402
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
    """Biases are equal and a matrix is square, so that a mix-up would go unseen by shape."""
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


def test_weights_that_two_nodes_read_are_one_parameter() -> None:
    weights = weights_of_three_layers()
    del weights["bias_1"], weights["bias_2"]
    model = model_of(weights, [
        helper.make_node("Gemm", ["x", "first"], ["a"]),
        helper.make_node("Gemm", ["a", "second"], ["b"]),
        helper.make_node("Gemm", ["b", "second"], ["c"]),
        helper.make_node("MatMul", ["c", "third"], ["y"]),
    ])  # fmt: skip
    found = trainable(model)
    parameters = dict(found.module.named_parameters())
    assert sorted(found.sources[name] for name in parameters) == ["first", "second", "third"]
    inputs = torch.ones(2, 16)
    found.module(inputs).sum().backward()
    (shared,) = (each for name, each in parameters.items() if found.sources[name] == "second")
    first, second, third = (torch.from_numpy(each) for each in weights.values())
    left, right = inputs @ first, third.sum(1).expand(2, -1)
    expected = left.T @ (right @ second.T) + (left @ second).T @ right
    assert shared.grad.numpy() == pytest.approx(expected.numpy(), rel=1e-4, abs=1e-4)


def test_names_that_pytorch_does_not_allow_are_found_again() -> None:
    weights = {"a.b/c": np.ones((16, 3), np.float32), "a_b_c": np.ones(3, np.float32)}
    found = trainable(model_of(weights, [helper.make_node("Gemm", ["x", *weights], ["y"])]))
    assert sorted(found.sources.values()) == sorted(weights)
    assert found.weights(found.module).keys() == weights.keys()


def test_an_operator_that_cannot_be_trained_is_named() -> None:
    model = model_of({}, [helper.make_node("Det", ["x"], ["y"])])
    with pytest.raises(UnsupportedModelError, match=r"m\.onnx.*Det cannot be trained"):
        trainable(model, "m.onnx")

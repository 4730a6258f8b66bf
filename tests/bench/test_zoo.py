"""The networks of the zoo are valid, deterministic, and run."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

onnx = pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

from arenite.planner.importers.onnx import read_onnx  # noqa: E402
from arenite.planner.programs.rules import Rules  # noqa: E402
from arenite.strategies import find_order  # noqa: E402
from bench.zoo import CELLS, NETWORKS, OPEN, SEQUENCES, SMALL  # noqa: E402
from bench.zoo.__main__ import main  # noqa: E402
from bench.zoo.builder import NetworkBuilder  # noqa: E402
from bench.zoo.opened import opened  # noqa: E402


def run(network: "onnx.ModelProto") -> dict[str, npt.NDArray[np.float32]]:
    """Run the network on a random image; return its outputs by name."""
    session = onnxruntime.InferenceSession(
        network.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (image,) = session.get_inputs()
    pixels = np.random.default_rng(1).random(image.shape, np.float32)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {image.name: pixels}), strict=True))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_is_valid_and_can_be_planned(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]()
    onnx.checker.check_model(network, full_check=True)
    path = tmp_path / "network.onnx"
    onnx.save(network, path)
    graph = read_onnx(path)
    assert len(graph.steps) == len(network.graph.node)


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_runs_and_its_best_order_is_proved(name: str, tmp_path: Path) -> None:
    network = CELLS[name]()
    onnx.checker.check_model(network, full_check=True)
    path = tmp_path / "cell.onnx"
    onnx.save(network, path)
    graph = read_onnx(path)
    assert find_order("optimal")(graph, Rules()).optimal
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator = np.random.default_rng(1)
    feeds = {i.name: generator.random(i.shape, np.float32) for i in session.get_inputs()}
    (result,) = session.run(None, feeds)
    assert np.isfinite(result).all()


@pytest.mark.parametrize("name", [*SEQUENCES, *SMALL])
def test_a_network_of_sequences_or_for_microcontrollers_runs(name: str) -> None:
    network = (SEQUENCES | SMALL)[name]()
    onnx.checker.check_model(network, full_check=True)
    session = onnxruntime.InferenceSession(
        network.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    generator = np.random.default_rng(1)
    feeds = {i.name: generator.random(i.shape, np.float32) for i in session.get_inputs()}
    for stated, found in zip(session.get_outputs(), session.run(None, feeds), strict=True):
        assert found.shape == tuple(stated.shape)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("name", OPEN)
def test_a_network_whose_length_is_open_runs_at_several(name: str) -> None:
    session = onnxruntime.InferenceSession(
        OPEN[name]().SerializeToString(), providers=["CPUExecutionProvider"]
    )
    inputs = session.get_inputs()
    assert any(isinstance(each, str) for each in inputs[0].shape)
    sizes = set()
    for length in (800, 1600) if name == "temporal-open" else (32, 64):
        lengths = {"total_sequence_length": 2 * length}  # of a decoder: past and new tokens
        feeds = {}
        for stated in inputs:
            shape = [
                lengths.get(each, length) if isinstance(each, str) else each
                for each in stated.shape
            ]
            is_float = stated.type == "tensor(float)"
            feeds[stated.name] = np.full(shape, 0.5 if is_float else 1).astype(
                np.float32 if is_float else np.int64
            )
        found = session.run(None, feeds)
        assert all(np.isfinite(each).all() for each in found)
        sizes.add(sum(each.size for each in found))
    assert len(sizes) == (1 if name == "mobilenet-v2-open" else 2)  # classes, whatever the image


def test_a_network_with_other_weights_at_another_size_cannot_be_opened() -> None:
    def dense(size: int) -> "onnx.ModelProto":
        net = NetworkBuilder("dense")
        net.output(net.dense(net.input("x", 1, size), 4), "y")
        return net.build()

    with pytest.raises(ValueError, match="depends on n, and not as a shape of a Reshape"):
        opened(dense, 8, 16, "n")


def test_the_same_network_has_the_same_bytes() -> None:
    first, second = NETWORKS["blazeface"](), NETWORKS["blazeface"]()
    assert first.SerializeToString() == second.SerializeToString()


def test_mobilenet_v1_gives_probabilities_of_which_none_takes_all() -> None:
    probabilities = run(NETWORKS["mobilenet-v1"]())["probabilities"]
    assert probabilities.shape == (1, 1001)
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert probabilities.max() < 0.5


def test_blazeface_gives_a_box_and_a_score_for_each_of_896_anchors() -> None:
    outputs = run(NETWORKS["blazeface"]())
    assert {name: array.shape for name, array in outputs.items()} == {
        "regressors": (1, 896, 16),
        "classificators": (1, 896, 1),
    }
    for array in outputs.values():
        assert np.isfinite(array).all()
        assert 0.01 < array.std() < 100


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "dilation", "pads", "result"),
    [
        (8, 3, 2, 1, [0, 0, 1, 1], 4),
        (9, 3, 2, 1, [1, 1, 1, 1], 5),
        (8, 3, 1, 4, [4, 4, 4, 4], 8),
        (8, 1, 2, 1, [0, 0, 0, 0], 4),
    ],
)
def test_same_padding_is_that_of_tensorflow(
    size: int, kernel: int, stride: int, dilation: int, pads: list[int], result: int
) -> None:
    net = NetworkBuilder("test")
    x = net.input("x", 1, 2, size, size)
    y = net.conv(x, 4, kernel, stride, dilation=dilation)
    net.output(y, "y")
    (node,) = net.build().graph.node
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert attributes["pads"] == pads
    assert net.shapes[y] == (1, 4, result, result)


def test_the_command_writes_the_network(tmp_path: Path) -> None:
    path = tmp_path / "blazeface.onnx"
    main(["blazeface", "-o", str(path)])
    assert path.read_bytes() == NETWORKS["blazeface"]().SerializeToString()

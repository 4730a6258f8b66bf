"""A core that was built without XNNPACK: what it lacks is left to others, or named."""

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.importers import load
from arenite.runtime import Session, _core
from arenite.runtime.lowering import UnsupportedOperatorsError, lower_onnx, lower_tflite
from arenite.runtime.operators import External
from support.running import MANY_KINDS, assert_same, build, random_feeds, reference_outputs
from support.tflite_operator import Given, operator_model, weights
from support.tiny_onnx import parse, save, with_random_weights

LACKS = {"Conv2D", "DepthwiseConv2D", "TransposedConv2D", "FullyConnected"}
"""Operators that XNNPACK alone runs."""


@pytest.fixture
def supported(monkeypatch):
    """What such a core runs; this one says that it runs no more."""
    names = [name for name in _core.supported() if name not in LACKS]
    monkeypatch.setattr(_core, "supported", lambda: names)
    return names


@pytest.fixture
def network(tmp_path):
    """An ONNX network with convolutions, of channels too, and a product with weights."""
    return save(tmp_path, with_random_weights(parse(MANY_KINDS)))


def test_operators_of_onnx_are_left_to_onnxruntime_with_the_reason(network, supported):
    model = load(network, weights=True)
    program = lower_onnx(model, supported=supported)
    external = [type(step.operator) is External for step in program.steps]
    assert sum(external) == 3
    (note,) = program.notes
    assert "1 Conv (this build of the core has no Conv2D)" in note
    assert "1 Conv (this build of the core has no DepthwiseConv2D)" in note
    assert "1 Gemm (this build of the core has no FullyConnected)" in note
    everything = lower_onnx(model)
    assert everything.notes == ()


@pytest.mark.usefixtures("supported")
def test_a_network_of_onnx_gives_the_same(network, tmp_path):
    with Session(build(network, tmp_path)) as session:
        assert session.backends().count("onnxruntime") == 3
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(network, feeds))


@pytest.mark.parametrize(
    ("code", "kind", "inputs", "output", "options"),
    [
        (
            "CONV_2D", "Conv2D",
            [Given((1, 4, 4, 2)), weights(np.ones((3, 1, 1, 2), np.float32))],
            Given((1, 4, 4, 3)), ("Conv2DOptions", {"strideW": 1, "strideH": 1}),
        ),
        (
            "FULLY_CONNECTED", "FullyConnected",
            [Given((1, 4)), weights(np.ones((3, 4), np.float32))],
            Given((1, 3)), ("FullyConnectedOptions", {}),
        ),
    ],
)  # fmt: skip
def test_operators_of_tflite_are_named_with_what_the_core_lacks(
    tmp_path, supported, code, kind, inputs, output, options
):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(code, [*inputs, None], [output], options))
    model = load(path, weights=True)
    assert lower_tflite(model).steps
    with pytest.raises(UnsupportedOperatorsError) as caught:
        lower_tflite(model, supported=supported)
    ((_, op_type, reason),) = caught.value.operators
    assert (op_type, reason) == (code, f"this build of the core has no {kind}")
    with pytest.raises(UnsupportedOperatorsError, match=rf"\({code}\): this build of the core"):
        compile_model(path)

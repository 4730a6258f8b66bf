"""Wide images and layers in groups of channels: the same bits, a part of them at a time."""

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.fitting import Fitting
from arenite.pipeline.making.programs import random_inputs, session_by_plan
from arenite.pipeline.targets.compiling import ALIASES, lower_model
from arenite.planner import Rules
from arenite.planner.rewrites.derivation import derive
from arenite.runtime.rewrites import split_channels
from arenite.strategies.base import native
from support.running import reference_outputs
from support.tflite_networks import RELU, NetworkMaker, hidden, summed, widened
from support.tiny_onnx import parse, save, with_random_weights

pytestmark = pytest.mark.skipif(not native.is_built(), reason="the native core was not built")

TAIL = """(float[1,6,5,5] x) => (y)
<float[64,6,1,1] w, float[64] b, float[10,64,1,1] f>
{ i = Abs(x) c = Conv(i, w, b) r = Relu(c) p = GlobalAveragePool(r) y = Conv(p, f) }"""


WINDOW = TAIL.replace("GlobalAveragePool(r)", "Conv<group=64>(r, d, e)").replace(
    "<float[64,6,1,1] w,", "<float[64,1,5,5] d, float[64] e, float[64,6,1,1] w,"
)
"""The same with a depthwise convolution, whose window is the image."""


def saved(folder, text=TAIL):
    return save(folder, with_random_weights(parse(text)))


@pytest.mark.parametrize("text", [TAIL, WINDOW], ids=["average", "window"])
def test_a_fit_keeps_a_few_channels_of_the_image(text, tmp_path):
    path = saved(tmp_path, text)
    fitting = Fitting(path, Reading())
    least = fitting.frontier()[-1]
    assert any("channels 16 to 32" in step.name for step in least.program.steps)
    arrays, outputs = random_inputs(fitting.program, 0), []
    for fit in (fitting.whole, least):
        with fitting.session(fit) as session:
            outputs.append(session.run(arrays)["y"])
    assert np.array_equal(*outputs)
    expected = reference_outputs(path, arrays)["y"]
    np.testing.assert_allclose(outputs[0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("text", [TAIL, WINDOW], ids=["average", "window"])
def test_groups_have_their_own_weights_and_none_twice(text, tmp_path):
    program = lower_model(saved(tmp_path, text)).program
    split = split_channels(program)
    labels = [step.operator.label for step in split.steps]
    assert labels.count("Conv2D") == 4 + 1
    assert labels.count("Pool2D") + labels.count("DepthwiseConv2D") == 4
    sizes = [sum(array.nbytes for array in each.constants.values()) for each in (program, split)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("text", [
    TAIL.replace("y = Conv(p, f)", "q = Conv(p, f) m = ReduceMax(r) y = Add(q, m)"),
    TAIL.replace("i = Abs(x) c = Conv(i, w, b) r = Relu(c)", "c = Conv(x, w, b) r = Abs(c)"),
    TAIL.replace("64", "24"),
    WINDOW.replace("float[64,1,5,5] d", "float[64,1,2,2] d").replace("64,1,1] f", "64,4,4] f"),
], ids=["read twice", "an average of no convolution", "a panel that is not full",
        "a window of many places"])  # fmt: skip
def test_what_cannot_be_split_stays(text, tmp_path):
    program = lower_model(saved(tmp_path, text)).program
    assert split_channels(program) is program


@pytest.fixture
def network(tmp_path):
    """Returns the path of a TFLite model."""

    def save_as(data):
        (tmp_path / "network.tflite").write_bytes(data)
        return tmp_path / "network.tflite"

    return save_as


@pytest.mark.parametrize(("make", "heights"), [(hidden, (560, 208)), (widened, (384, 96))])
def test_hidden_layers_of_bytes_are_summed_up_group_by_group(make, heights, network):
    lowered = lower_model(network(make()))
    whole, split = (
        lowered.compiled(derive(each, Rules(ALIASES)))
        for each in (lowered.program, split_channels(lowered.program))
    )
    assert (whole.source.problem.lower_bound, split.source.problem.lower_bound) == heights
    outputs = []
    for seed in range(3):
        arrays = random_inputs(lowered.program, seed)
        for each in (whole, split):
            with session_by_plan(each) as session:
                (found,) = session.run(arrays).values()
                outputs.append(found)
        assert np.array_equal(outputs[-2], outputs[-1])
    assert len(np.unique(outputs)) > 10


def perceptron(dtype="int8", hidden_units=512, units=8, *, reads_twice=False):
    """A hidden layer, and what reads it."""
    maker = NetworkMaker(dtype)
    x = maker.input(1, 16)
    wide = maker.fully_connected(x, hidden_units, activation=RELU)
    outputs = [maker.fully_connected(wide, units) for _ in range(1 + reads_twice)]
    return maker.model([x], outputs)


@pytest.mark.parametrize("make", [
    lambda: perceptron("float32"), lambda: perceptron("int16"), lambda: perceptron("uint8"),
    lambda: perceptron(reads_twice=True), lambda: perceptron(units=128),
    lambda: perceptron(hidden_units=500), lambda: widened("int8", 4, 3), summed,
], ids=["floats", "16 bits", "a filter with a zero point", "read twice", "many sums",
        "a panel that is not full", "an image with rows", "no hidden layer"])  # fmt: skip
def test_what_cannot_be_summed_up_stays(make, network):
    program = lower_model(network(make())).program
    assert split_channels(program) is program

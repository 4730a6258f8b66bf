"""Gradients of weights as training steps write them: found, and the same as written."""

import random
from types import SimpleNamespace

import numpy as np
import onnx
import onnx.helper
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.tensors import DType
from arenite.runtime.operators import WeightGradient
from arenite.training.graph import StepGraph
from arenite.training.rules_windows import Windows, to_weights
from support.running import assert_agrees
from support.tiny_onnx import save


def model_of(graph, inputs, output):
    """Return what a builder built."""
    value = onnx.helper.make_tensor_value_info
    types = {"float32": onnx.TensorProto.FLOAT, "float16": onnx.TensorProto.FLOAT16}
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            [node.written() for node in graph.nodes],
            "gradient",
            [value(each.name, types[each.dtype.label], each.shape) for each in inputs],
            [value(output.name, types[output.dtype.label], output.shape)],
            [onnx.numpy_helper.from_array(a, name) for name, a in graph.constants.items()],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
    )
    model.ir_version = 8
    return model


def gradient_model(windows, batch, groups, inner, made, *, image_by_image, dtype=DType.FLOAT32):
    graph = StepGraph()
    x = graph.define("x", dtype, (batch, groups * inner, *windows.lengths))
    g = graph.define("g", dtype, (batch, groups * made, *windows.counts))
    how = SimpleNamespace(graph=graph, image_by_image=image_by_image)
    found = to_weights(how, x, g, windows, groups)
    zero = graph.constant(np.float32(0), dtype)
    return model_of(graph, [x, g], graph.minus(found, zero))


def random_windows(draw):
    kernel, strides, dilations = (tuple(draw.randint(1, 3) for _ in range(2)) for _ in range(3))
    before = tuple(draw.randint(0, taps) for taps in kernel)
    counts = tuple(draw.randint(1, 6) for _ in range(2))
    reach = [
        (count - 1) * stride + (taps - 1) * dilation + 1
        for count, stride, taps, dilation in zip(counts, strides, kernel, dilations, strict=True)
    ]
    # What is behind is padded, or left out.
    after = [draw.randint(1 - stride, taps) for stride, taps in zip(strides, kernel, strict=True)]
    sums = [total - each for total, each in zip(reach, before, strict=True)]
    after = [min(each, total - 1) for each, total in zip(after, sums, strict=True)]
    lengths = tuple(total - each for total, each in zip(sums, after, strict=True))
    return Windows(lengths, counts, kernel, strides, dilations, before, tuple(after))


def found_in(path):
    steps = compile_model(path).program.steps
    return [step.operator for step in steps if isinstance(step.operator, WeightGradient)]


@pytest.mark.parametrize("seed", range(60))
def test_a_gradient_of_any_window_is_found_and_is_that_of_onnxruntime(seed, tmp_path):
    draw = random.Random(seed)
    windows = random_windows(draw)
    if min(windows.lengths) < 1:
        pytest.skip("the windows see nothing but padding")
    groups = draw.choice([1, 1, 1, 2, 18])
    inner, made = draw.choice([(1, 1 if groups > 1 else 2), (1, 4), (2, 3), (17, 5), (20, 1)])
    model = gradient_model(
        windows, draw.randint(1, 3), groups, inner, made, image_by_image=draw.random() < 0.5
    )
    path = save(tmp_path, model)
    (operator,) = found_in(path)
    assert operator.groups == groups
    assert len(compile_model(path).program.steps) <= 5  # it, two transposes, and the end
    assert_agrees(path, tmp_path, seed=seed)


PLAIN = Windows((8, 8), (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))


def damaged(edit, inner, *, image_by_image=False):
    """Return the model of a gradient in which something was changed."""
    model = gradient_model(PLAIN, 2, 1, inner, 4, image_by_image=image_by_image)
    edit({node.name: node for node in model.graph.node}, model.graph)
    return model


def set_attribute(name, value):
    def edit(node):
        kept = [each for each in node.attribute if each.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])

    return edit


def taps_in_another_order(nodes, _graph):
    names = list(nodes["Concat"].input)
    names[0], names[1] = names[1], names[0]
    del nodes["Concat"].input[:]
    nodes["Concat"].input.extend(names)


def scaled(nodes, _graph):
    gemm = next(node for name, node in nodes.items() if name.startswith("Gemm"))
    set_attribute("alpha", 0.5)(gemm)


def padded_with_ones(nodes, graph):
    graph.initializer.append(onnx.numpy_helper.from_array(np.float32(1), "one"))
    nodes["Pad"].input[2] = "one"


def one_image_twice(nodes, graph):
    """Let the second image be the first again, and its gradient too."""
    slices = [node for node in graph.node if node.op_type == "Slice" and node.input[0] in "xg"]
    for number, node in enumerate(slices[2:]):
        del node.input[:]
        node.input.extend(slices[number].input)


def other_gradient(nodes, graph):
    """Let the images change places, and not their gradients."""
    slices = [node for node in graph.node if node.op_type == "Slice" and node.input[0] == "x"]
    one, other = (list(node.input) for node in slices)
    for node, names in zip(slices, (other, one), strict=True):
        del node.input[:]
        node.input.extend(names)


@pytest.mark.parametrize(
    ("edit", "inner", "image_by_image"),
    [
        (taps_in_another_order, 16, False),
        (scaled, 16, False),
        (one_image_twice, 16, True),
        (other_gradient, 16, True),
        (one_image_twice, 3, True),
        (other_gradient, 3, True),
    ],
)
def test_what_is_almost_a_gradient_is_computed_as_it_is_written(
    edit, inner, image_by_image, tmp_path
):
    path = save(tmp_path, damaged(edit, inner, image_by_image=image_by_image))
    assert found_in(path) == []
    assert_agrees(path, tmp_path)


def test_what_is_padded_with_ones_is_the_image(tmp_path):
    path = save(tmp_path, damaged(padded_with_ones, 16))
    assert [operator.before for operator in found_in(path)] == [(0, 0)]
    assert_agrees(path, tmp_path)


def test_a_gradient_in_16_bits_is_found_as_it_is_computed_with_32(tmp_path):
    model = gradient_model(PLAIN, 2, 1, 16, 4, image_by_image=False, dtype=DType.FLOAT16)
    path = save(tmp_path, model)
    assert len(found_in(path)) == 1
    assert_agrees(path, tmp_path, tolerance=4e-3)

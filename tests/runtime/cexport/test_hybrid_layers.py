"""Layers of floats with weights of bytes have the outputs of LiteRT's reference kernels in C."""

import re

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.c import compile_hybrid
from arenite.runtime import Session
from arenite.runtime.program import program_pieces
from arenite.strategies import find
from support.exported_c import Bands, Machine, compiled, drawn, exported
from support.shared_material import shared
from support.tflite_operator import Given, Reference, operator_model, weights

SAME, VALID = 0, 1


def filters(*shape, axis=None, seed=1):
    """Weights of bytes: a scale for each index of an axis, or one for all."""
    random = np.random.default_rng(seed)
    count = 1 if axis is None else shape[axis]
    scales = tuple(map(float, random.uniform(0.001, 0.02, count)))
    array = random.integers(-127, 128, shape).astype(np.int8)
    return weights(array, scales=scales, axis=axis or 0)


def bias(count):
    return weights(np.random.default_rng(2).normal(0, 1, count).astype(np.float32))


def conv(**options):
    return "Conv2DOptions", {"padding": SAME, "strideH": 1, "strideW": 1, **options}


def depthwise(**options):
    return "DepthwiseConv2DOptions", {
        "padding": SAME, "strideH": 1, "strideW": 1, "depthMultiplier": 1, **options
    }  # fmt: skip


DENSE = "FullyConnectedOptions"
CASES = {
    "dense": ("FULLY_CONNECTED", (3, 70), filters(9, 70), bias(9), (3, 9), (DENSE, {})),
    "dense, no bias, ReLU": (
        "FULLY_CONNECTED", (1, 33), filters(6, 33), None, (1, 6),
        (DENSE, {"fusedActivationFunction": 1}),
    ),
    "dense, zero points": (
        "FULLY_CONNECTED", (5, 40), filters(8, 40), bias(8), (5, 8),
        (DENSE, {"asymmetricQuantizeInputs": True}),
    ),
    "dense, a scale each": (
        "FULLY_CONNECTED", (4, 40), filters(7, 40, axis=0), bias(7), (4, 7), (DENSE, {}),
    ),
    "dense, a scale each, zero points": (
        "FULLY_CONNECTED", (4, 40), filters(7, 40, axis=0), bias(7), (4, 7),
        (DENSE, {"asymmetricQuantizeInputs": True}),
    ),
    "dense over several axes": (
        "FULLY_CONNECTED", (1, 4, 24), filters(5, 24), bias(5), (1, 4, 5),
        (DENSE, {"keepNumDims": True}),
    ),
    "conv, a scale each": (
        "CONV_2D", (2, 7, 8, 5), filters(6, 3, 3, 5, axis=0), bias(6), (2, 7, 8, 6), conv(),
    ),
    "conv, one scale": (
        "CONV_2D", (2, 7, 8, 5), filters(6, 3, 3, 5), bias(6), (2, 7, 8, 6), conv(),
    ),
    "conv of one pixel": (
        "CONV_2D", (1, 7, 8, 5), filters(6, 1, 1, 5, axis=0), bias(6), (1, 7, 8, 6), conv(),
    ),
    "conv, strides, ReLU6": (
        "CONV_2D", (1, 9, 8, 3), filters(7, 3, 2, 3, axis=0), bias(7), (1, 4, 4, 7),
        conv(padding=VALID, strideH=2, strideW=2, fusedActivationFunction=3),
    ),
    "conv, dilated": (
        "CONV_2D", (1, 9, 9, 3), filters(5, 3, 3, 3, axis=0), bias(5), (1, 9, 9, 5),
        conv(dilationHFactor=2, dilationWFactor=2),
    ),
    "conv, groups": (
        "CONV_2D", (1, 6, 6, 6), filters(4, 3, 3, 3, axis=0), bias(4), (1, 6, 6, 4), conv(),
    ),
    "depthwise": (
        "DEPTHWISE_CONV_2D", (2, 7, 8, 5), filters(1, 3, 3, 5, axis=3), bias(5), (2, 7, 8, 5),
        depthwise(),
    ),
    "depthwise, two outputs a channel": (
        "DEPTHWISE_CONV_2D", (1, 7, 8, 3), filters(1, 3, 3, 6, axis=3), bias(6), (1, 4, 4, 6),
        depthwise(strideH=2, strideW=2, depthMultiplier=2),
    ),
    "depthwise of one channel": (
        "DEPTHWISE_CONV_2D", (1, 9, 7, 1), filters(1, 4, 3, 8, axis=3), bias(8), (1, 9, 7, 8),
        depthwise(depthMultiplier=8),
    ),
}  # fmt: skip


def model(case, path):
    code, shape, matrix, added, result, options = CASES[case]
    path.write_bytes(operator_model(code, [Given(shape), matrix, added], [Given(result)], options))
    return path


INPUTS = {
    "random": lambda random, shape: random.normal(0.5, 2, shape),
    "positive": lambda random, shape: random.uniform(0.1, 3, shape),
    "zeros": lambda random, shape: np.zeros(shape),
    "one negative": lambda random, shape: -np.eye(1, np.prod(shape), 3).reshape(shape),
    "halves": lambda random, shape: random.integers(-254, 255, shape) / 2,
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_every_bit_is_that_of_litert(case, tmp_path):
    path = model(case, tmp_path / "model.tflite")
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c"))
    reference = Reference(path)
    (given,) = export.interface.inputs
    random = np.random.default_rng(4)
    for draw in INPUTS.values():
        array = draw(random, given.tensor.shape).astype(np.float32)
        (made,) = machine.run({given.port.name: array}).values()
        (expected,) = reference.run([array])
        np.testing.assert_array_equal(made.reshape(expected.shape), expected)


@pytest.mark.parametrize("case", CASES)
def test_our_runtime_has_the_same_bits_where_it_is_the_reference_of_an_export(case, tmp_path):
    path = model(case, tmp_path / "model.tflite")
    compiled_model = compile_hybrid(path, Reading())
    pieces = program_pieces(compiled_model.assemble(find("best")(compiled_model.source.problem)))
    reference = Reference(path)
    random = np.random.default_rng(8)
    with Session.of_pieces(list(pieces), "model") as session:
        (port,) = session.inputs
        for draw in INPUTS.values():
            array = draw(random, port.shape).astype(np.float32)
            (made,) = session.run({port.name: array}).values()
            np.testing.assert_array_equal(made, *reference.run([array]))


@pytest.mark.parametrize("case", CASES)
def test_weights_stay_bytes(case, tmp_path):
    path = model(case, tmp_path / "model.tflite")
    export = exported(path)
    text = export.files[f"{export.name}_weights.c"].decode()
    (count,) = set(re.findall(r"const int8_t \w+_weights\[(\d+)\]", text))
    matrix = CASES[case][2].array
    assert matrix.size <= int(count) <= 2 * matrix.size
    assert export.weight_bytes < 4 * matrix.size


def test_a_matrix_product_runs_in_bands_of_rows(tmp_path):
    path = tmp_path / "model.tflite"
    tensors = [Given((1, 24, 40)), filters(40, 40), bias(40)]
    options = (DENSE, {"keepNumDims": True})
    path.write_bytes(operator_model("FULLY_CONNECTED", tensors, [Given((1, 24, 40))], options))
    bands = Bands(path)
    export = bands.within(bands.least)
    machine = Machine.of(export, compiled(export, tmp_path / "c"))
    inputs = drawn(export, 1)
    (made,) = machine.run(inputs).values()
    (expected,) = Reference(path).run(list(inputs.values()))
    np.testing.assert_array_equal(made.reshape(expected.shape), expected)


@pytest.mark.parametrize(("name", "least"), [("ad_toycar_hybrid", 1.0), ("dtln_quant_1", 0.9)])
def test_a_published_model_has_the_outputs_of_litert_and_no_more_flash_than_its_file(
    name, least, tmp_path
):
    path = shared(f"models/tflite/{name}.tflite")
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    export = exported(path, large_weights=1 << 16)
    assert f"{export.name}_weights.bin" in export.files
    assert export.weight_bytes < path.stat().st_size
    machine = Machine.of(export, compiled(export, tmp_path))
    inputs = drawn(export, 0)
    made = machine.run(inputs)
    expected = Reference(path).run([inputs[p.port.name] for p in export.interface.inputs])
    for port, array in zip(export.interface.outputs, expected, strict=True):
        own = made[port.port.name].reshape(array.shape)
        np.testing.assert_allclose(own, array, atol=1e-6 * np.abs(array).max(), rtol=0)
        assert (own == array).mean() >= least

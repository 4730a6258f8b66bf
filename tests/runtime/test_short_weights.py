"""Weights that a model has in 16 bits stay so, and give the bits of those in 32."""

import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import arenite
from arenite.pipeline.base import Reading
from arenite.pipeline.making import build_model
from arenite.planner import DType
from arenite.runtime import ProgramError, Session
from arenite.runtime.operators import LoadWeights
from arenite.runtime.rewrites import Activations, WeightBudget, weight_bytes
from support.decoders import DIMS, decoder_file
from support.one_step import Given, constant, one_step
from support.short_floats import KINDS, shortened, shortened_model, stored
from support.tiny_onnx import parse, save, with_random_weights

DTYPES = {"float16": DType.FLOAT16, "bfloat16": DType.BFLOAT16}
PRODUCTS = """(float[n,96] x) => (y, z) <float[96,1600] a, float[1600] b, float[1600,200] c>
    { m = MatMul(x, a) p = Add(m, b) q = Relu(p) y = MatMul(q, c) z = Relu(y) }"""
TABLE = """(int64[2,n] x) => (y) <float[300,40] t> { y = Gather(t, x) }"""
CONVOLUTIONS = """(float[1,64,8,8] x) => (y) <float[256,64,3,3] a, float[512,256,1,1] c>
    { p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p) y = Conv(q, c) }"""


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def types_of(program):
    return {
        program.tensors[name].dtype for name, each in program.constants.items() if each.ndim > 1
    }


def outputs(model, feeds, **options):
    with arenite.Session(model, **options) as session:
        return {name: each.copy() for name, each in session.run(feeds).items()}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 16])
@pytest.mark.parametrize("channels", [8, 16, 75, 128, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_a_product_has_the_bits_of_weights_in_32(kind, channels, rows, threads):
    panels = -(-channels // 16)
    weights = shortened(floats(panels, 90, 16), kind)
    source = Given((1, rows, 90))
    bias = constant(floats(channels, seed=1))
    addend = Given((1, rows, channels))
    result = Given((1, rows, channels))
    for rest in ((), (bias,), (bias, addend), (None, addend)):
        made = []
        for given in (constant(weights), stored(weights, kind)):
            pieces = one_step(
                "FullyConnected", {"min": -5.0, "max": 6.0}, [source, given, *rest], [result],
                scratch=3 * 4 * 90 * 16,
            )  # fmt: skip
            feeds = {"i0": floats(1, rows, 90, seed=2)}
            if len(rest) == 2:
                feeds["i3"] = floats(1, rows, channels, seed=3)
            with Session.of_pieces(pieces, "product", threads=threads) as session:
                made.append(session.run(feeds)["o0"].copy())
        np.testing.assert_array_equal(*made)


@pytest.mark.parametrize("vectors", ["avx2", "any"])
def test_every_kind_of_vectors_reads_them(vectors):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    subprocess.run(
        [*command, "-k", "has_the_bits_of_weights_in_32 or rows_of_a_table"],
        env=os.environ | {"ARENITE_VECTORS": vectors}, check=True,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_table_are_widened(kind):
    table = shortened(floats(50, 37), kind)
    given = stored(table, kind)
    pieces = one_step("Gather", {}, [given, Given((3, 5), "int64")], [Given((3, 5, 37))])
    indices = np.random.default_rng(1).integers(-50, 50, (3, 5))
    with Session.of_pieces(pieces, "table") as session:
        np.testing.assert_array_equal(session.run({"i1": indices})["o0"], table[indices])


def test_a_table_is_widened_to_32_bits_only():
    given = stored(shortened(floats(50, 37), "bfloat16"), "bfloat16")
    pieces = one_step("Gather", {}, [given, Given((3,), "int64")], [Given((3, 37), "float16")])
    with pytest.raises(ProgramError, match="input and output differ in type"):
        Session.of_pieces(pieces, "table")


@pytest.mark.parametrize("position", ["input", "output", "state"])
def test_only_weights_may_be_bfloat16(position):
    given, result = Given((1, 3), "bfloat16"), Given((1, 3), "bfloat16")
    if position == "output":
        given = Given((1, 3), "int16")
    move = {"shape": [3], "input_strides": [1], "output_strides": [1]}
    kept = (0,) if position == "state" else ()
    pieces = one_step("Copy", {"moves": [move]}, [given], [result], kept=kept)
    with pytest.raises(ProgramError, match="is of bfloat16, which is supported for weights alone"):
        Session.of_pieces(pieces, "copy")


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_few_rows_keep_them(kind, tmp_path):
    path = save(tmp_path, shortened_model(PRODUCTS, kind))
    for rows in (1, 4):
        reading = Reading(dims={"n": rows})
        program = build_model(path, reading).compiled.program
        wide = build_model(path, Reading(dims={"n": rows}, activations=Activations.FP32))
        assert types_of(program) == {DTYPES[kind]}
        assert types_of(wide.compiled.program) == {DType.FLOAT32}
        assert weight_bytes(program) < 0.52 * weight_bytes(wide.compiled.program)
        feeds = {"x": floats(rows, 96)}
        made, right = (
            outputs(path, feeds, dims={"n": rows}, activations=each) for each in (None, "fp32")
        )
        for name, each in right.items():
            np.testing.assert_array_equal(made[name], each)


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_of_sizes_keeps_them_to_the_same_bits(kind, tmp_path):
    path = save(tmp_path, shortened_model(PRODUCTS, kind))
    with (
        arenite.Session(path, dims={"n": "1..20"}) as short,
        arenite.Session(path, dims={"n": "1..20"}, activations="fp32") as wide,
    ):
        for rows in (1, 2, 7, 20):
            feeds = {"x": floats(rows, 96, seed=rows)}
            right = wide.run(feeds)["y"]
            np.testing.assert_array_equal(short.run(feeds)["y"], right)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_looks_up_rows_in_16_bits(kind, tmp_path):
    path = save(tmp_path, shortened_model(TABLE, kind))
    program = build_model(path, Reading(dims={"n": 5})).compiled.program
    assert types_of(program) == {DTYPES[kind]}
    feeds = {"x": np.random.default_rng(0).integers(0, 300, (2, 5))}
    made, right = (outputs(path, feeds, dims={"n": 5}, activations=a) for a in (None, "fp32"))
    np.testing.assert_array_equal(made["y"], right["y"])


def test_weights_that_many_rows_share_are_in_32_bits(tmp_path):
    products = save(tmp_path, shortened_model(PRODUCTS, "float16"))
    many = build_model(products, Reading(dims={"n": 33})).compiled.program
    assert types_of(many) == {DType.FLOAT32}
    images = save(tmp_path, shortened_model(CONVOLUTIONS, "float16"))
    assert types_of(build_model(images).compiled.program) == {DType.FLOAT32}


def test_weights_stay_in_32_bits_where_their_conversion_needs_a_larger_arena(tmp_path):
    text = PRODUCTS.replace("1600", "64").replace("200", "64")
    path = save(tmp_path, shortened_model(text, "float16"))
    for rows, kept in ((4, DType.FLOAT16), (5, DType.FLOAT32)):  # four are multiplied as they lie
        program = build_model(path, Reading(dims={"n": rows})).compiled.program
        assert types_of(program) == {kept}


def test_weights_that_would_lose_bits_stay_in_32(tmp_path):
    path = save(tmp_path, with_random_weights(parse(PRODUCTS)))
    program = build_model(path, Reading(dims={"n": 1})).compiled.program
    assert types_of(program) == {DType.FLOAT32}


def test_weights_of_16_bits_are_exact_beyond_the_first_ones(tmp_path):
    model = shortened_model(PRODUCTS, "float16")
    (short,) = (each for each in model.graph.initializer if each.name.startswith("a/"))
    array = numpy_helper.to_array(short).astype(np.float32)
    array[-1, -1] = 1 / 3
    short.CopyFrom(numpy_helper.from_array(array, short.name))
    program = build_model(save(tmp_path, model), Reading(dims={"n": 1})).compiled.program
    assert types_of(program) == {DType.FLOAT32, DType.FLOAT16}


@pytest.mark.parametrize("text", [PRODUCTS, CONVOLUTIONS], ids=["products", "convolutions"])
@pytest.mark.parametrize("budget", ["60%,in-turn", "60%,beside"])
@pytest.mark.parametrize("kind", KINDS)
def test_streamed_weights_are_half_as_many_bytes(kind, budget, text, tmp_path):
    path = save(tmp_path, shortened_model(text, kind))
    dims = {"n": 4} if text is PRODUCTS else {}
    reading = Reading(dims=dims, weight_budget=WeightBudget.parse(budget))
    program = build_model(path, reading).compiled.program
    assert types_of(program) == {DTYPES[kind]}
    windows = {
        program.tensors[step.outputs[0]].dtype
        for step in program.steps
        if isinstance(step.operator, LoadWeights)
    }
    assert windows == {DTYPES[kind]}
    arenite.build(path, tmp_path / "streamed.arena", dims=dims, weights=budget)
    with arenite.Session(tmp_path / "streamed.arena", poison=0xFF) as session:
        feeds = {"x": floats(*session.inputs[0].shape)}
        made = session.run(feeds)["y"]
    right = outputs(path, feeds, dims=dims, activations="fp32")["y"]
    if text is PRODUCTS:
        np.testing.assert_array_equal(made, right)
    else:  # Winograd tiles, which streamed weights do not have
        np.testing.assert_allclose(made, right, atol=1e-5 * np.abs(right).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_keeps_its_bits(kind, tmp_path):
    path = decoder_file(tmp_path)
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim > 1:
            exact = shortened(np.ascontiguousarray(array), kind)
            tensor.CopyFrom(numpy_helper.from_array(exact, tensor.name))
    onnx.save(model, path)
    arenite.build(path, tmp_path / "short.arena", dims=DIMS)
    arenite.build(path, tmp_path / "wide.arena", dims=DIMS, activations="fp32")
    short, wide = (tmp_path / f"{name}.arena" for name in ("short", "wide"))
    assert short.stat().st_size < wide.stat().st_size
    with arenite.Generator(short) as one, arenite.Generator(wide) as other:
        first, second = (each.generate([1, 2, 3], max_tokens=20).tokens for each in (one, other))
    assert list(first) == list(second)

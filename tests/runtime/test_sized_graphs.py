"""Programs for ranges of sizes compute what the reference of onnx does at each size."""

import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import arenite
from arenite.planner.importers import load
from arenite.planner.sizes import Dimension
from support.sized_graphs import (
    DATA,
    NOT_COMPUTED,
    RULES,
    dimensions_of,
    drawn,
    points,
    random_chain,
)
from support.tiny_onnx import parse, save, with_random_integers, with_random_weights

GRAPHS = {**RULES, **DATA}


@pytest.mark.parametrize("case", sorted(GRAPHS.keys() - NOT_COMPUTED))
def test_results_are_right_at_each_size(case: str, tmp_path: Path) -> None:
    model = with_random_weights(parse(GRAPHS[case]))
    assert_right_at_each_size(model, dimensions_of(GRAPHS[case]), tmp_path)


def test_parts_are_spread_in_place_down_to_a_single_row(tmp_path: Path) -> None:
    pool = "MaxPool<kernel_shape=[5,5], pads=[2,2,2,2]>"
    model = with_random_weights(
        parse(f"""(float[1,3,n,m] x) => (float[1,8,n,m] y)
        <float[4,3,1,1] w, float[8,16,1,1] u> {{ a = Conv(x, w) b = {pool}(a) c = {pool}(b)
        d = {pool}(c) j = Concat<axis=1>(a, b, c, d) y = Conv(j, u) }}""")
    )
    ranges = {name: Dimension(name, 1, 4) for name in ("n", "m")}
    assert_right_at_each_size(model, ranges, tmp_path)


ATTENTION = """(float[2,n,8] x, float[2,2,2,m,4] p) => (float[2,n,8] y, float[2,2,2,k,4] z)
    <float[8,24] w, float[24] b> { y, z =
    com.microsoft.Attention<num_heads=2, unidirectional=1>(x, w, b, "", p) }"""


@pytest.mark.parametrize("rows", [1, Dimension("n", 1, 5)])
def test_attention_hides_later_words_at_each_size(rows: int | Dimension, tmp_path: Path) -> None:
    model = with_random_weights(parse(ATTENTION, microsoft=True))
    path, program = save(tmp_path, model), tmp_path / "program.arena"
    arenite.build(path, program, dims={"n": rows, "m": Dimension("m", 0, 7)})
    generator = np.random.default_rng(0)
    session = arenite.Session(program)
    for num_rows in (1,) if rows == 1 else (1, 3, 5):
        for past in (0, 4, 7):
            feeds = {
                "x": generator.standard_normal((2, num_rows, 8)).astype(np.float32),
                "p": generator.standard_normal((2, 2, 2, past, 4)).astype(np.float32),
            }
            found = session.run(feeds)
            expected = arenite.Session(path, dims={"n": num_rows, "m": past}).run(feeds)
            for name, array in expected.items():
                np.testing.assert_array_equal(found[name], array)
    most = 1 if rows == 1 else 5
    highest = arenite.Session(path, dims={"n": most, "m": 7})
    assert session.arena_bytes <= highest.arena_bytes  # keys and values move in what is kept


RECURRENT = {
    "one time of several texts": (1, Dimension("m", 1, 15)),
    "several times of several texts": (Dimension("n", 1, 9), Dimension("m", 1, 15)),
    "several times of one text": (Dimension("n", 1, 30), 1),
}


def recurrent(kind: str) -> onnx.ModelProto:
    if kind == "DynamicQuantizeLSTM":
        return with_random_integers(parse("""(float[n,m,8] x) => (float[n,1,m,20] y)
            <int8[1,8,80] w, int8[1,20,80] r, float[1] s = {0.02}, int8[1] z>
            { y, h, c = com.microsoft.DynamicQuantizeLSTM<hidden_size=20>
            (x, w, r, , , , , , s, z, s, z) }""", microsoft=True))  # fmt: skip
    gates = {"LSTM": 4, "GRU": 3}[kind]
    results = "y, h, c" if kind == "LSTM" else "y, h"
    return with_random_weights(parse(f"""(float[n,m,8] x) => (float[n,1,m,20] y)
        <float[1,{gates * 20},8] w, float[1,{gates * 20},20] r>
        {{ {results} = {kind}<hidden_size=20>(x, w, r) }}"""))  # fmt: skip


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "DynamicQuantizeLSTM"])
@pytest.mark.parametrize(("times", "texts"), RECURRENT.values(), ids=RECURRENT)
def test_recurrent_layers_are_right_at_each_size(
    kind: str, times: int | Dimension, texts: int | Dimension, tmp_path: Path
) -> None:
    model = recurrent(kind)
    dims = {"n": times, "m": texts}
    ranges = {name: each for name, each in dims.items() if isinstance(each, Dimension)}
    path, program = save(tmp_path, model), tmp_path / "program.arena"
    arenite.build(path, program, dims=dims)
    generator = np.random.default_rng(0)
    session = arenite.Session(program)
    for sizes in points(tuple(ranges.values())):
        fixed = {"n": 1, "m": 1, **sizes}
        feeds = {"x": generator.standard_normal((*fixed.values(), 8)).astype(np.float32)}
        expected = arenite.Session(path, dims=fixed).run(feeds)
        np.testing.assert_array_equal(session.run(feeds)["y"], expected["y"])


@pytest.mark.parametrize("seed", range(20))
def test_random_chains_are_right_at_each_size(seed: int, tmp_path: Path) -> None:
    model = with_random_weights(parse(random_chain(random.Random(seed))))
    dims = {"n": Dimension("n", 12, 33), "m": Dimension("m", 9, 41, 4)}
    assert_right_at_each_size(model, dims, tmp_path)


def assert_right_at_each_size(
    model: onnx.ModelProto, dims: dict[str, Dimension], folder: Path
) -> None:
    path, program = save(folder, model), folder / "program.arena"
    arenite.build(path, program, dims=dims)
    generator = np.random.default_rng(0)
    read = load(path, dims=dims)
    session = arenite.Session(program)
    for sizes in points(tuple(dims.values())):
        feeds = {name: drawn(generator, read.tensors[name], sizes) for name in read.input_tensors}
        found = session.run(feeds)
        assert session.sizes == sizes
        expected = ReferenceEvaluator(model).run(None, feeds)
        for name, array in zip(read.output_tensors, expected, strict=True):
            np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-4)

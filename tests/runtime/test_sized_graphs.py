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
from support.tiny_onnx import parse, save, with_random_weights

LEFT_TO_ONNX_RUNTIME = {
    "einsum", "gather elements", "lstm", "normalisation", "scatter", "triangle",
}  # fmt: skip
"""Graphs that are refused: ONNX Runtime runs some step, and would have one size."""
GRAPHS = {**RULES, **DATA}


@pytest.mark.parametrize("case", sorted(GRAPHS.keys() - NOT_COMPUTED - LEFT_TO_ONNX_RUNTIME))
def test_results_are_right_at_each_size(case: str, tmp_path: Path) -> None:
    model = with_random_weights(parse(GRAPHS[case]))
    assert_right_at_each_size(model, dimensions_of(GRAPHS[case]), tmp_path)


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

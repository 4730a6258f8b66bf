"""Tensors that are made by rows and used up by rows, with whole steps between, along a range."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.programs import session_of
from arenite.pipeline.targets.compiling import lower_model, rules, runs_by_rows
from arenite.planner import derive
from arenite.planner.programs import PCIE
from arenite.planner.sizes import Dimension
from arenite.runtime.program import program_pieces
from arenite.strategies.bands.regions import Region, Regions
from arenite.strategies.bands.search import run_in_bands
from support.banding import assert_same_bits, placed
from support.running import PoisonedSession
from support.tiny_onnx import parse, save, with_random_weights

EXCITED = """(float[1,8,h,w] x) => (y)
    <float[48,8,1,1] a, float[48,1,3,3] b, float[48,48,1,1] c, float[8,48,1,1] d,
    float[8,8,3,3] e> {
    p = Conv(x, a) q = Conv<group=48, pads=[1,1,1,1]>(p, b) g = GlobalAveragePool(q)
    s = Conv(g, c) z = Sigmoid(s) m = Mul(q, z) n = Conv(m, d)
    y = Conv<pads=[1,1,1,1]>(n, e) }"""
RANGE = {name: Dimension(name, 8, 32, 8) for name in ("h", "w")}
HIGHEST = {"h": 32, "w": 32}


def in_bands(path, dims, regions, is_allowed=lambda _: True):
    """Return a model with some of its steps in bands of four rows, and its records."""
    lowered = lower_model(path, Reading(dims=dims))
    allowed = partial(runs_by_rows, lowered.program)
    found = Regions(lowered.program, PCIE, lambda each: is_allowed(each) and allowed(each))
    banded = run_in_bands(found, [Region(*region, 4, 4) for region in regions])
    return lowered, derive(banded, replace(rules(), outlines=True, by_rows=found.by_rows))


@pytest.mark.parametrize(
    ("second", "kept"),
    [((5, 8), {"q"}), ((6, 8), {"q", "m"})],
    ids=["a whole step reads them", "another overwrites them"],
)
def test_rows_stay_where_whole_steps_take_them_by_rows(second, kept, tmp_path):
    path = save(tmp_path, with_random_weights(parse(EXCITED)))
    regions = [(0, 2), second]
    _, alone = in_bands(path, HIGHEST, regions)
    lowered, found = in_bands(path, RANGE, regions)
    assert found.problem.lower_bound == alone.problem.lower_bound
    assert {n.removesuffix("/all rows") for n in found.program.tensors if "all rows" in n} == kept
    assert not any(record.parts for record in found.problem.records if record.name in kept)
    assembly = lowered.compiled(found).assemble(placed(found.problem))
    with PoisonedSession(program_pieces(assembly)) as session:
        for height, width in ((8, 8), (32, 8), (16, 24), (32, 32)):
            x = np.random.default_rng(height).standard_normal((1, 8, height, width))
            feeds = {"x": x.astype(np.float32)}
            model = lower_model(path, Reading(dims={"h": height, "w": width}))
            with session_of(model.program) as single:
                assert_same_bits(session.run(feeds), single.run(feeds))


def test_rows_move_where_a_whole_step_cannot_take_them_by_rows(tmp_path):
    path = save(tmp_path, with_random_weights(parse(EXCITED)))
    _, found = in_bands(
        path, RANGE, [(0, 2), (5, 8)], lambda each: each.step.name != "GlobalAveragePool_2"
    )
    assert not any("all rows" in name for name in found.program.tensors)
    assert any(record.parts for record in found.problem.records)

"""Checkmate: its rounding, its segments, and programs beyond its most stages."""

import onnx
import pytest

from arenite.planner.errors import UnmetBudgetError
from arenite.planner.importers import load
from arenite.planner.programs.costs import LEAST, PCIE, Budget
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.rewrites.rescheduling import peak_of, reschedule
from arenite.planner.timing import simulate
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.checkmate import Checkmate, by_segments, closure, segments
from arenite.training.step import TrainingRecipe
from support.gradients import randomised, step_of
from support.tiny_onnx import parse
from support.trading import swish_layers

NETWORK = """(float[2,4] x) => (y) <float[4,5] w, float[5] b, float[5,3] v>
{ a = Gemm(x, w, b) r = Relu(a) y = MatMul(r, v) }"""


def training_step(tmp_path, network, loss="mse"):
    path = tmp_path / "step.onnx"
    onnx.save(step_of(tmp_path, randomised(network), TrainingRecipe(loss)).model, path)
    return load(path)


def test_weights_are_read_before_the_step_that_trains_them(tmp_path):
    program = training_step(tmp_path, parse(NETWORK))
    work = Work.of(program, PCIE)
    assert any(
        work.makers[storage] > step for step, read in enumerate(work.reads) for storage in read
    )
    order = closure(work, {}, 0.5, range(len(work.sizes)))
    assert len(order) > work.num_steps  # nothing is kept, so steps run again
    check_same_values(program, reschedule(work.program, Draft(work, order).schedule()))


def test_segments_make_about_as_many_bytes_and_pass_on_only_what_is_read_outside(tmp_path):
    work = Work.of(training_step(tmp_path, swish_layers(), "cross-entropy"), PCIE)
    segment_of = segments(work, 20)
    assert segment_of == sorted(segment_of)
    assert set(segment_of) == set(range(segment_of[-1] + 1))
    stages = by_segments(work, segment_of)
    assert stages.num_steps == segment_of[-1] + 1 <= 20 < work.num_steps
    made = [sum(work.sizes[each] for each in written) for written in stages.writes]
    assert sum(made) < sum(sum(work.sizes[each] for each in its) for its in work.writes)
    assert sum(stages.seconds) == pytest.approx(sum(work.seconds))
    assert by_segments(work, segments(work, work.num_steps)) is work


def test_a_chain_deeper_than_the_interpreter_recurses_is_run_again(tmp_path):
    depth = 1500
    steps = [f"t{n} = Relu({f't{n - 1}' if n else 'x'})" for n in range(depth)]
    text = f"(float[4] x) => (y) {{ {' '.join(steps)} y = Add(t{depth - 1}, t{depth // 2}) }}"
    path = tmp_path / "chain.onnx"
    onnx.save(parse(text), path)
    work = Work.of(load(path), PCIE)
    # Nothing is kept, so each stage runs all before it: only the last two are looked at.
    last = [0] * (depth - 1) + [1, 1]
    assert len(closure(work, {}, 0.5, range(len(work.sizes)), last)) > depth


def test_more_steps_than_stages_are_solved_by_segments(tmp_path):
    pytest.importorskip("ortools")
    program = training_step(tmp_path, swish_layers(), "cross-entropy")
    policy = Checkmate()
    assert Work.of(program, PCIE).num_steps > policy.most_stages
    made = policy(program, Budget.parse("70%"), PCIE)
    assert peak_of(made) <= 0.7 * peak_of(program)
    check_same_values(program, made)
    before = simulate(program, PCIE).seconds
    assert simulate(made, PCIE).seconds < 1.15 * before


def test_it_finds_the_least_that_its_relaxations_reach(tmp_path):
    pytest.importorskip("ortools")
    program = training_step(tmp_path, swish_layers(), "cross-entropy")
    made = Checkmate()(program, LEAST, PCIE)
    assert peak_of(made) < 0.5 * peak_of(program)
    check_same_values(program, made)
    with pytest.raises(UnmetBudgetError):
        Checkmate()(program, Budget(peak_of(made) // 2), PCIE)

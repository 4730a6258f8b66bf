"""The rounding of Checkmate's relaxation, which needs no solver."""

import onnx

from arenite.planner.importers import load
from arenite.planner.programs.costs import PCIE
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.rewrites.rescheduling import reschedule
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from arenite.strategies.survey.checkmate import closure
from arenite.training.step import TrainingRecipe
from support.gradients import randomised, step_of
from support.tiny_onnx import parse

NETWORK = """(float[2,4] x) => (y) <float[4,5] w, float[5] b, float[5,3] v>
{ a = Gemm(x, w, b) r = Relu(a) y = MatMul(r, v) }"""


def test_weights_are_read_before_the_step_that_trains_them(tmp_path):
    path = tmp_path / "step.onnx"
    onnx.save(step_of(tmp_path, randomised(parse(NETWORK)), TrainingRecipe("mse")).model, path)
    program = load(path)
    work = Work.of(program, PCIE)
    assert any(
        work.makers[storage] > step for step, read in enumerate(work.reads) for storage in read
    )
    order = closure(work, {}, 0.5)
    assert len(order) > work.num_steps  # nothing is kept, so steps run again
    check_same_values(program, reschedule(work.program, Draft(work, order).schedule()))

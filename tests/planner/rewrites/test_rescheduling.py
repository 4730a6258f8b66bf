from dataclasses import replace
from itertools import pairwise

import pytest

from arenite.planner.programs.costs import PCIE, Link
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.programs.program import COMPUTE, Program
from arenite.planner.rewrites.rescheduling import Schedule, SpillSpan, reschedule
from arenite.planner.tensors import Alias
from arenite.strategies.schedules.work import Work
from support.training_programs import Mix, program_in_parts, results, training_program


@pytest.fixture
def work() -> Work:
    return Work.of(training_program(0), PCIE)


def carried(work: Work) -> str:
    """Return a tensor of the forward pass that the backward pass reads."""
    for storage, name in enumerate(work.names):
        reads = [step for step, read in enumerate(work.reads) if storage in read]
        if work.may_leave[storage] and name.startswith("a") and max(reads) - min(reads) > 6:
            return name
    raise AssertionError


def bounds(work: Work, tensor: str) -> tuple[int, int]:
    storage = work.names.index(tensor)
    touches = [
        step for step in range(work.num_steps)
        if storage in work.reads[step] or storage in work.writes[step]
    ]  # fmt: skip
    gaps = [(b - a, a, b) for a, b in pairwise(touches)]
    return max(gaps)[1:]


def moved(work: Work) -> Program:
    tensor = carried(work)
    left, back = bounds(work, tensor)
    spills = (SpillSpan(tensor, left + 1, left + 2, back - 1, back),)
    return reschedule(work.program, Schedule(work.numbers, spills), Link(1, 1))


def test_the_own_order_is_the_same_program(work: Work) -> None:
    made = reschedule(work.program, Schedule(work.numbers))
    assert sorted(step.name for step in made.steps) == sorted(
        step.name for step in work.program.steps
    )
    check_same_values(work.program, made)


def test_a_move_is_four_steps_two_of_them_on_the_link(work: Work) -> None:
    made = moved(work)
    added = [step for step in made.steps if step.name not in {s.name for s in work.program.steps}]
    assert [step.lane for step in added] == ["link out", COMPUTE, "link back", COMPUTE]
    assert "spilled" in {memory.name for memory in made.memories}
    assert results(made) == results(work.program)
    assert results(made, lazy=True) == results(work.program)


def test_what_cannot_run_again_is_refused(work: Work) -> None:
    update = next(n for n, step in enumerate(work.program.steps) if step.operator.updates)
    with pytest.raises(ValueError, match="cannot run again"):
        reschedule(work.program, Schedule((*work.numbers, update)))


def test_no_step_is_left_out(work: Work) -> None:
    with pytest.raises(ValueError, match="leaves out step 'end'"):
        reschedule(work.program, Schedule(work.numbers[:-1]))


@pytest.mark.parametrize("tensor", ["loss", "w0"])
def test_what_stays_cannot_be_moved(work: Work, tensor: str) -> None:
    with pytest.raises(ValueError, match="cannot be spilled"):
        reschedule(work.program, Schedule(work.numbers, (SpillSpan(tensor, 1, 2, 3, 4),)))


@pytest.mark.parametrize("places", [(3, 2, 4, 5), (1, 4, 3, 5), (1, 2, 5, 4), (-1, 2, 3, 4)])
def test_a_move_goes_forward_in_time(places: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="must not decrease"):
        SpillSpan("x", *places)


def test_a_lowered_view_follows_what_it_lies_in() -> None:
    """A view without a step of its own, as lowering leaves them."""
    program = training_program(0)
    work = Work.of(program, PCIE)
    tensor = carried(work)
    view = replace(program.tensors[tensor], name="seen", alias=Alias(tensor))
    last = max(n for n, step in enumerate(program.steps) if tensor in step.reads)
    reader = program.steps[last]
    inputs = tuple("seen" if name == tensor else name for name in reader.inputs)
    steps = [*program.steps]
    steps[last] = replace(reader, inputs=inputs)
    program = replace(program, tensors={**program.tensors, "seen": view}, steps=tuple(steps))
    made = moved(Work.of(program, PCIE))
    (source,) = {
        made.root(name)[0] for step in made.steps if step.name == reader.name
        for name in step.reads if name.startswith("seen")
    }  # fmt: skip
    assert source in {name for step in made.steps if step.lane == "link back"
                      for name in step.writes}  # fmt: skip
    check_same_values(program, made)
    assert results(made) == results(program)
    assert results(made, lazy=True) == results(program)


def test_a_tensor_that_no_step_touches_whole_stays_for_its_parts() -> None:
    program = program_in_parts(Mix(1), Mix(2), Mix(3))
    made = reschedule(
        program, Schedule(tuple(range(6)), (SpillSpan("carried", 1, 4, 4, 5),)), PCIE.link
    )
    assert made.root("middle") == ("whole", 32)
    check_same_values(program, made)

"""The loads of a draft after any change are those of the same runs from the beginning."""

import random

import pytest

from arenite.planner.programs.costs import PCIE
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.rewrites.rescheduling import peak_of, reschedule
from arenite.strategies.schedules.draft import Draft
from arenite.strategies.schedules.work import Work
from support.training_programs import training_program


def check(draft: Draft) -> None:
    fresh = Draft(draft.work, [draft.step_of[run] for run in draft.order])
    assert draft.loads.tolist() == fresh.loads.tolist()
    for its, others in zip(draft.instances, fresh.instances, strict=True):
        assert [draft.touches(each) for each in its] == [fresh.touches(each) for each in others]


@pytest.mark.parametrize("seed", range(20))
def test_runs_come_and_go(seed: int) -> None:
    program = training_program(seed)
    work = Work.of(program, PCIE)
    draft = Draft(work)
    assert draft.peak == peak_of(program)
    draw = random.Random(seed)
    for _ in range(8):
        slot = draw.randrange(1, len(draft.order))
        steps = [
            step
            for step in range(work.num_steps)
            if work.may_repeat[step]
            and draft.slot(step) < slot
            and (
                work.closed_by[step] == work.num_steps or draft.slot(work.closed_by[step]) >= slot
            )
        ]
        chain = sorted(draw.sample(steps, min(len(steps), draw.randint(1, 3))))
        predicted = draft.with_chain(chain, slot)
        draft.insert(chain, slot)
        assert draft.loads.tolist() == predicted.tolist()
        check(draft)
        made = reschedule(work.program, draft.schedule())
        assert peak_of(made) == draft.peak
        check_same_values(program, made)
        run = draw.choice(draft.order)
        without = draft.without(run)
        if without is None:
            with pytest.raises(ValueError, match="cannot be left out"):
                draft.remove(run)
        else:
            draft.remove(run)
            assert draft.loads.tolist() == without.tolist()
            check(draft)


def test_what_is_away_takes_no_bytes() -> None:
    draft = Draft(Work.of(training_program(3), PCIE))
    slot = int(draft.loads.argmax())
    before = draft.loads.copy()
    instance, back = max(draft.carried(slot), key=lambda each: draft.slot(each[1]))
    left = draft.before(instance, back)
    draft.spill(instance, left, back)
    size = draft.work.sizes[instance.storage]
    inside = range(draft.slot(left) + 1, draft.slot(back))
    for place in range(len(draft.order)):
        assert before[place] - draft.loads[place] == (size if place in inside else 0)
    assert not draft.is_there(instance, slot)
    assert instance not in [each for each, _ in draft.carried(slot)]

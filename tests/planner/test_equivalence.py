from dataclasses import replace

import pytest

from arenite.planner.errors import DifferentValuesError
from arenite.planner.programs.equivalence import check_same_values
from arenite.planner.programs.program import Program, Step
from arenite.planner.rewrites.narrowing import keep_narrow
from arenite.planner.tensors import DType
from support.training_programs import Mix, program_in_parts, training_program

PROGRAM = training_program(4)


def swapped(index: int, **changes: object) -> tuple[Step, ...]:
    steps = list(PROGRAM.steps)
    steps[index] = replace(steps[index], **changes)  # type: ignore[arg-type]
    return tuple(steps)


def test_a_program_computes_what_it_computes() -> None:
    check_same_values(PROGRAM, PROGRAM)


def test_another_operator_is_another_value() -> None:
    changed = replace(PROGRAM, steps=swapped(0, operator=Mix(1)))
    with pytest.raises(DifferentValuesError, match="'loss' is computed differently"):
        check_same_values(PROGRAM, changed)


def test_a_state_that_is_not_updated_is_another_value() -> None:
    kept = tuple(step for step in PROGRAM.steps if not step.name.startswith("update"))
    with pytest.raises(DifferentValuesError, match="'w"):
        check_same_values(PROGRAM, replace(PROGRAM, steps=kept))


def test_other_outputs_are_refused() -> None:
    with pytest.raises(DifferentValuesError, match="different outputs"):
        check_same_values(PROGRAM, replace(PROGRAM, outputs=PROGRAM.outputs[:1]))


def test_what_is_written_in_parts_is_what_all_its_parts_are() -> None:
    program = program_in_parts(Mix(1), Mix(2), Mix(3))
    check_same_values(program, program)
    for name in ("first", "then", "last"):
        changed = replace(program, steps=_with(program, name, Mix(9)))
        with pytest.raises(DifferentValuesError, match="'y' is computed differently"):
            check_same_values(program, changed)


def _with(program: Program, name: str, operator: Mix) -> tuple[Step, ...]:
    return tuple(
        replace(step, operator=operator) if step.name == name else step for step in program.steps
    )


def test_what_was_kept_with_fewer_bits_is_another_value_unless_rounding_is_allowed() -> None:
    number = max(n for n, step in enumerate(PROGRAM.steps) if "a0" in step.inputs)
    first = next(n for n, step in enumerate(PROGRAM.steps) if "a0" in step.outputs)
    rounded = keep_narrow(PROGRAM, {"a0": (first, number)})
    assert [step.name for step in rounded.steps if "a0" in step.name] == ["narrow a0", "widen a0"]
    check_same_values(PROGRAM, rounded, rounded=True)
    with pytest.raises(DifferentValuesError):
        check_same_values(PROGRAM, rounded)
    with pytest.raises(DifferentValuesError):
        check_same_values(
            PROGRAM, replace(PROGRAM, steps=swapped(0, operator=Mix(1))), rounded=True
        )


def test_booleans_kept_as_bits_are_the_same_values_and_other_bytes_are_not() -> None:
    number = max(n for n, step in enumerate(PROGRAM.steps) if "a0" in step.inputs)
    first = next(n for n, step in enumerate(PROGRAM.steps) if "a0" in step.outputs)
    mask = replace(PROGRAM.tensors["a0"], dtype=DType.BOOL)
    program = replace(PROGRAM, tensors={**PROGRAM.tensors, "a0": mask})
    made = keep_narrow(program, {"a0": (first, number)})
    assert made.tensors["a0 narrow"].size == -(-mask.size // 8)
    check_same_values(program, made)
    bytes_for_booleans = replace(made, tensors={**made.tensors, "a0": PROGRAM.tensors["a0"]})
    with pytest.raises(DifferentValuesError):
        check_same_values(PROGRAM, bytes_for_booleans)
    unpack = next(n for n, step in enumerate(made.steps) if step.name == "widen a0")
    other = replace(made.steps[unpack], inputs=(program.input_tensors[0],))
    steps = (*made.steps[:unpack], other, *made.steps[unpack + 1 :])
    with pytest.raises(DifferentValuesError):
        check_same_values(program, replace(made, steps=steps))

"""When a state is given the value that the next run starts with.

A model may read a state, compute, assign, and read again. Here whatever reads a state after it
was assigned takes what was assigned, so the state itself holds the last run's value for as long
as a step reads it, and is written once: right behind the last of these steps, or by the step that
makes the value, if that comes later still.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from arenite.planner.names import Names
from arenite.runtime.lowering.draft import Draft, Value
from arenite.runtime.lowering.layout import as_written
from arenite.runtime.operators.movement import Copy, Move


def copy_of(value: Value) -> Copy:
    """Return the operator that copies a value as it is stored."""
    return Copy(moves=(Move(shape=(math.prod(value.shape),), input_strides=(1,),
                            output_strides=(1,)),))  # fmt: skip


def with_assignments(
    drafts: list[Draft],
    assigned: Mapping[str, Value],
    states: Mapping[str, Value],
    fixed: Collection[str],
    names: Names,
) -> list[Draft]:
    """Return the steps with those that write states.

    Args:
        drafts: The steps in their order.
        assigned: What each state is assigned; none lies in a state.
        states: The states themselves.
        fixed: Storages and constants that no step can make in a state's place.
        names: Names of the steps.
    """
    several = [value.tensor for value in assigned.values()]
    for name, value in assigned.items():
        state = states[name]
        last_read = max((n for n, d in enumerate(drafts) if _reads(d, name)), default=-1)
        made = max((n for n, d in enumerate(drafts) if _makes(d, value.tensor)), default=-1)
        free = value.tensor not in fixed and several.count(value.tensor) == 1
        if free and last_read < made and _is_all_of(drafts[made], value, state):
            drafts = [_renamed(draft, value.tensor, name) for draft in drafts]
        else:
            draft = Draft(names.take(f"{name}/assigned"), copy_of(value), [value], [state])
            drafts = [*drafts[: (at := max(last_read, made) + 1)], draft, *drafts[at:]]
    return drafts


def _reads(draft: Draft, storage: str) -> bool:
    return any(value is not None and value.tensor == storage for value in draft.inputs)


def _makes(draft: Draft, storage: str) -> bool:
    return any(value.tensor == storage for value in draft.outputs)


def _is_all_of(draft: Draft, value: Value, state: Value) -> bool:
    """Tell whether the step makes the value as the state stores it, and nothing else."""
    made = next(each for each in draft.outputs if each.tensor == value.tensor)
    is_as_written = value.order == as_written(len(value.shape))
    return (
        (made.stored, made.dtype, value.offset) == (state.stored, state.dtype, 0)
        and is_as_written
        and math.prod(value.shape) == math.prod(state.shape)
    )


def _renamed(draft: Draft, old: str, new: str) -> Draft:
    def moved(value: Value) -> Value:
        return replace(value, tensor=new) if value.tensor == old else value

    inputs = [None if value is None else moved(value) for value in draft.inputs]
    return replace(draft, inputs=inputs, outputs=[moved(value) for value in draft.outputs])

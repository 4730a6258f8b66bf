"""Keep 32-bit floats as 16-bit ones between two uses."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from arenite.planner.operators.moving import Narrow, Widen
from arenite.planner.programs.program import Names, Program, Step
from arenite.planner.tensors import DType, TensorKind


def keep_narrow(program: Program, stays: Mapping[str, tuple[int, int]]) -> Program:
    """Return a program that keeps tensors as 16-bit floats for a while, which rounds results.

    Args:
        program: The program.
        stays: By tensor of 32-bit floats that no other shares storage with, the step after which
            it is narrowed, and the later one before which it is widened; steps from that one on
            read it rounded.

    Cost: O(operands of the steps).
    """
    tensors, taken = dict(program.tensors), Names(program.tensors)
    names = Names(step.name for step in program.steps)
    behind: dict[int, list[Step]] = defaultdict(list)
    ahead: dict[int, list[Step]] = defaultdict(list)
    renamed: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for name, (last, following) in stays.items():
        tensor = replace(program.tensors[name], kind=TensorKind.ACTIVATION)
        narrow, wide = taken.take(f"{name} narrow"), taken.take(f"{name} rounded")
        tensors[narrow] = replace(tensor, name=narrow, dtype=DType.FLOAT16)
        tensors[wide] = replace(tensor, name=wide)
        behind[last].append(Step(names.take(f"narrow {name}"), Narrow(), (name,), (narrow,)))
        ahead[following].append(Step(names.take(f"widen {name}"), Widen(), (narrow,), (wide,)))
        renamed[following].append((name, wide))
    present: dict[str, str] = {}
    steps: list[Step] = []
    for number, step in enumerate(program.steps):
        steps += ahead[number]
        present.update(renamed[number])
        steps.append(replace(step, inputs=tuple(present.get(name, name) for name in step.inputs)))
        steps += behind[number]
    return replace(program, tensors=tensors, steps=tuple(steps))

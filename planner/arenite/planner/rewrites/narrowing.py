"""Keep 32-bit floats as 16-bit ones, and booleans as bits, between two uses."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from arenite.planner.operators.moving import Narrow, Pack, Unpack, Widen
from arenite.planner.operators.operator import Operator
from arenite.planner.programs.program import Names, Program, Step
from arenite.planner.tensors import DType, TensorKind


def keep_narrow(program: Program, stays: Mapping[str, tuple[int, int]]) -> Program:
    """Return a program that keeps tensors in fewer bits for a while.

    Floats become 16-bit floats, which rounds results; booleans become bits, which is exact.

    Args:
        stays: By tensor of 32-bit floats or booleans that no other shares storage with, the step
            after which it is coded, and the later one before which it is decoded; steps from
            that one on read the decoded tensor.

    Cost: O(operands of the steps).
    """
    tensors, taken = dict(program.tensors), Names(program.tensors)
    names = Names(step.name for step in program.steps)
    behind: dict[int, list[Step]] = defaultdict(list)
    ahead: dict[int, list[Step]] = defaultdict(list)
    renamed: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for name, (last, following) in stays.items():
        tensor = replace(program.tensors[name], kind=TensorKind.ACTIVATION)
        narrow, wide = taken.take(f"{name} narrow"), taken.take(f"{name} wide")
        tensors[narrow] = replace(tensor, name=narrow, dtype=DType.FLOAT16)
        tensors[wide] = replace(tensor, name=wide)
        code: Operator = Narrow()
        decode: Operator = Widen()
        if tensor.dtype is DType.BOOL:
            code, decode = Pack(), Unpack()
            shape = (-(-tensor.num_elements // 8),)
            tensors[narrow] = replace(tensor, name=narrow, dtype=DType.UINT8, shape=shape)
        behind[last].append(Step(names.take(f"narrow {name}"), code, (name,), (narrow,)))
        ahead[following].append(Step(names.take(f"widen {name}"), decode, (narrow,), (wide,)))
        renamed[following].append((name, wide))
    present: dict[str, str] = {}
    steps: list[Step] = []
    for number, step in enumerate(program.steps):
        steps += ahead[number]
        present.update(renamed[number])
        steps.append(replace(step, inputs=tuple(present.get(name, name) for name in step.inputs)))
        steps += behind[number]
    return replace(program, tensors=tensors, steps=tuple(steps))

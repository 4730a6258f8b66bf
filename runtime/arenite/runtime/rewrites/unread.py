"""Leave out of a program what no step reads or writes any more."""

from dataclasses import replace

from arenite.planner.program import Program
from arenite.planner.tensors import TensorKind


def without_unread(program: Program) -> Program:
    """Return the program without the tensors and constants that nothing names.

    Its inputs, outputs and states stay.
    """
    used = {name for step in program.steps for name in (*step.reads, *step.writes)}
    used.update(program.input_tensors, program.output_tensors, program.initial.values())
    used.update(
        name for name, tensor in program.tensors.items() if tensor.kind is TensorKind.STATE
    )
    pending = list(used)
    while pending:
        alias = program.tensors[pending.pop()].alias
        if alias is not None and alias.tensor not in used:
            used.add(alias.tensor)
            pending.append(alias.tensor)
    return replace(
        program,
        tensors={name: tensor for name, tensor in program.tensors.items() if name in used},
        constants={name: array for name, array in program.constants.items() if name in used},
    )

"""Which operands the result of a step may overwrite, going by its operator."""

from collections.abc import Collection

from arenite.planner.program import Program, Step
from arenite.planner.rewrites.aliasing.kinds import AliasKind
from arenite.planner.tensors import TensorKind


def overwriting_kind(step: Step) -> AliasKind:
    """Return the kind of sharing that must be allowed for the step to run in place."""
    return AliasKind.NORMALISATION if step.operator.reduces_groups else AliasKind.IN_PLACE


def overwritable(program: Program, step: Step, kinds: Collection[AliasKind]) -> tuple[str, ...]:
    """Return the operands that the first output may overwrite if this is their last use."""
    if overwriting_kind(step) not in kinds:
        return ()
    operands = program.operands(step)
    result = operands.result
    if result is None or result.alias is not None or result.kind is TensorKind.STATE:
        return ()
    updated = {step.inputs[position] for position in step.operator.updates}
    spared = () if AliasKind.REUSE_INPUTS in kinds else program.input_tensors
    names = (step.inputs[position] for position in step.operator.overwritable(operands))
    return tuple(
        name
        for name in dict.fromkeys(names)
        if name not in updated and program.root(name)[0] not in spared
    )

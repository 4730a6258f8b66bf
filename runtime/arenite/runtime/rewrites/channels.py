"""Compute a convolution some channels at a time where only an average over the image reads it.

The last convolution of many networks makes a wide image of which an average keeps one number a
channel. Some filters, which are some of its panels, make some channels of the image; their average
is done before the next ones are made. Every element is computed as before.
"""

from dataclasses import replace

from arenite.planner import Program, Step, TensorKind
from arenite.planner.sizes import depends
from arenite.runtime.operators.base import PANEL, RuntimeOperator
from arenite.runtime.operators.convolution import Conv2D
from arenite.runtime.operators.movement import Copy
from arenite.runtime.rewrites.drafting import ProgramDraft
from arenite.runtime.rewrites.heads import joins
from arenite.runtime.rewrites.scores import Makers

_MOST_GROUPS = 8
"""Groups of channels: each reads the image before the convolution once more."""


def split_channels(program: Program) -> Program:
    """Return the program with averaged convolutions in groups of channels, itself if it has none.

    Filters are packed, or state output channels first.
    """
    makers, draft = Makers(program), ProgramDraft(program)
    has_split = False
    for step in program.steps:
        groups = _groups(program, makers, step)
        if groups > 1:
            _split(program, makers, draft, step, groups)
            has_split = True
        else:
            draft.keep(step)
    return draft.finished() if has_split else program


def _groups(program: Program, makers: Makers, step: Step) -> int:
    """Return in how many groups of channels an average can be made; 1 if it is none."""
    operands = program.operands(step)
    source, result = operands.source, operands.result
    if source is None or result is None or not step.operator.accumulates_rows(operands):
        return 1
    maker, channels = makers.maker(source.name), source.shape[-1]
    if maker is None or not isinstance(maker.operator, Conv2D) or maker.operator.groups > 1:
        return 1
    if result.alias is not None or depends(channels) or result.num_elements != channels:
        return 1
    if not makers.is_private(source.name) or len(step.inputs) > 1:
        return 1
    filters, *others = (
        program.tensors[name] if name else None for name in maker.inputs[1 : Conv2D.SCALES + 1]
    )
    if len(maker.inputs) > Conv2D.SCALES + 1 or filters is None:
        return 1
    if any(each is not None and each.shape != (channels,) for each in others):
        return 1
    constants = [each for each in (filters, *others) if each is not None]
    if any(each.kind is not TensorKind.CONSTANT or each.alias is not None for each in constants):
        return 1
    if not all(name in program.constants for name in maker.inputs[1:] if name):
        return 1
    is_packed = len(filters.shape) != 4
    panels = filters.shape[0] if is_packed else channels // PANEL
    if panels * PANEL != channels:
        return 1
    return max(number for number in range(1, _MOST_GROUPS + 1) if panels % number == 0)


def _split(program: Program, makers: Makers, draft: ProgramDraft, step: Step, groups: int) -> None:
    """Add an average, and the convolution that it averages, in groups of channels."""
    source, result = (program.tensors[name] for name in (step.inputs[0], step.outputs[0]))
    maker = makers.maker(source.name)
    assert maker is not None
    assert isinstance(maker.operator, RuntimeOperator)
    assert isinstance(step.operator, RuntimeOperator)
    draft.drop(maker.name)
    channels = source.shape[-1] // groups
    parts: list[str] = []
    for group in range(groups):
        constants = (draft.sliced(name, group, groups) for name in maker.inputs[1:])
        label = f"/channels {group * channels} to {(group + 1) * channels}"
        image = draft.emit(
            maker.operator, (maker.inputs[0], *constants), source.name + label,
            (*source.shape[:-1], channels), source.dtype, source.quantisation,
        )  # fmt: skip
        average = draft.emit(
            step.operator, (image,), result.name + label,
            (*result.shape[:-1], channels), result.dtype, result.quantisation,
        )  # fmt: skip
        parts.append(average)
    joined = Copy(moves=joins(1, source.shape[-1], groups))
    draft.keep(replace(step, operator=joined, inputs=tuple(parts)))

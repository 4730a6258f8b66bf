"""Compute a convolution some channels at a time where only a small image is made of it.

The last convolution of many networks makes a wide image of which an average, or a depthwise
convolution with few places, keeps little of each channel. Some filters, which are some of its
panels, make some channels of the image; what is kept of them is made before the next ones are.
Every element is computed as before.
"""

from dataclasses import replace

from arenite.planner import Program, Step, Tensor, TensorKind
from arenite.planner.sizes import depends
from arenite.runtime.operators.base import PANEL, RuntimeOperator
from arenite.runtime.operators.convolution import Conv2D, DepthwiseConv2D
from arenite.runtime.operators.movement import Copy
from arenite.runtime.rewrites.drafting import ProgramDraft
from arenite.runtime.rewrites.heads import joins
from arenite.runtime.rewrites.scores import Makers

_MOST_GROUPS = 8
"""Groups of channels: each reads the image before the convolution once more."""
_LEAST_SHARE = 16
"""Elements of the wide image, at least, of which a depthwise convolution makes one: bands of rows
hold less of larger results."""


def split_channels(program: Program) -> Program:
    """Return the program with wide convolutions in groups of channels, itself if it has none.

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
    """Return in how many groups of channels a step and its maker can run; 1 if they cannot."""
    operands = program.operands(step)
    source, result = operands.source, operands.result
    if source is None or result is None or not _keeps_little(program, step):
        return 1
    maker, channels = makers.maker(source.name), source.shape[-1]
    if maker is None or not isinstance(maker.operator, Conv2D) or maker.operator.groups > 1:
        return 1
    if result.alias is not None or depends(channels) or depends(result.num_elements):
        return 1
    if not makers.is_private(source.name) or len(maker.inputs) > Conv2D.SCALES + 1:
        return 1
    filters, *others = (
        program.tensors[name] if name else None for name in maker.inputs[1 : Conv2D.SCALES + 1]
    )
    if filters is None or any(each is not None and each.shape != (channels,) for each in others):
        return 1
    if not _are_constants(program, (*maker.inputs[1:], *step.inputs[1:])):
        return 1
    is_packed = len(filters.shape) != 4
    panels = filters.shape[0] if is_packed else channels // PANEL
    if panels * PANEL != channels:
        return 1
    return max(number for number in range(1, _MOST_GROUPS + 1) if panels % number == 0)


def _keeps_little(program: Program, step: Step) -> bool:
    """Tell whether a step makes little of each channel of its first input, apart from others."""
    operands = program.operands(step)
    source, result = operands.source, operands.result
    assert source is not None
    assert result is not None
    channels = source.shape[-1]
    if isinstance(step.operator, DepthwiseConv2D):
        constants = [program.tensors[name] for name in step.inputs[1:] if name]
        return (
            all(each.shape[-1] == channels for each in (result, *constants))
            and source.num_elements >= _LEAST_SHARE * result.num_elements
        )
    is_average = step.operator.accumulates_rows(operands) > 0
    return is_average and result.num_elements == channels and len(step.inputs) == 1


def _are_constants(program: Program, names: tuple[str, ...]) -> bool:
    """Tell whether operands are constants of their own, whose elements are known."""

    def is_own(tensor: Tensor) -> bool:
        return tensor.kind is TensorKind.CONSTANT and tensor.alias is None

    return all(
        name in program.constants and is_own(program.tensors[name]) for name in names if name
    )


def _split(program: Program, makers: Makers, draft: ProgramDraft, step: Step, groups: int) -> None:
    """Add a step, and the convolution that it reads, in groups of channels."""
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
        own = (draft.sliced(name, group, groups, axis=-1) for name in step.inputs[1:])
        label = f"/channels {group * channels} to {(group + 1) * channels}"
        image = draft.emit(
            maker.operator, (maker.inputs[0], *constants), source.name + label,
            (*source.shape[:-1], channels), source.dtype, source.quantisation,
        )  # fmt: skip
        kept = draft.emit(
            step.operator, (image, *own), result.name + label,
            (*result.shape[:-1], channels), result.dtype, result.quantisation,
        )  # fmt: skip
        parts.append(kept)
    places = result.num_elements // source.shape[-1]
    joined = Copy(moves=joins(places, source.shape[-1], groups))
    draft.keep(replace(step, operator=joined, inputs=tuple(parts)))

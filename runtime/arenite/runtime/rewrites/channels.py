"""Compute convolutions some channels at a time where little is made of the image between them.

The last convolution of many networks makes a wide image of which an average, or a depthwise
convolution with few places, keeps little of each channel. Some filters, which are some of its
panels, make some channels of the image; what is kept of them is made before the next ones are.

A hidden layer of many channels, of bytes and one pixel, is another such image: each of the
products that read it adds up all channels. Of each group of channels the products are added to
sums of 32 bits; those of the last group make bytes of the sums. Floats stay whole: in another
order their sums are others.

Every element is computed as before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.sizes import depends
from arenite.runtime.operators.base import PANEL, RuntimeOperator
from arenite.runtime.operators.convolution import Conv2D, Convolution, DepthwiseConv2D
from arenite.runtime.operators.elementwise import Convert, Unary
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import Copy
from arenite.runtime.rewrites.drafting import ProgramDraft
from arenite.runtime.rewrites.heads import joins
from arenite.runtime.rewrites.scores import Makers

_MOST_GROUPS = 8
"""Groups of channels: each reads the image before the convolution once more."""
_LEAST_SHARE = 16
"""Elements of the wide image, at least, of which a depthwise convolution makes one: bands of rows
hold less of larger results."""
_MOST_SUMMED = 16
"""Groups of channels whose products are added to sums: each reads and writes these once more.
There are fewer where half as many bytes as those of the sums hold a group."""


@dataclass(frozen=True, slots=True)
class _Split:
    """Steps that run once for each group of channels.

    Attributes:
        steps: A convolution, and functions of each channel of its result.
        reader: The step that reads what they make.
        groups: Number of the groups.
        is_summed: Whether the reader adds up all channels; else it keeps each apart.
    """

    steps: tuple[Step, ...]
    reader: Step
    groups: int
    is_summed: bool


def split_channels(program: Program) -> Program:
    """Return the program with wide convolutions in groups of channels, itself if it has none.

    Filters are packed, or state output channels first.
    """
    splits = _splits(program)
    if not splits:
        return program
    draft = ProgramDraft(program)
    for step in program.steps:
        split = splits.get(step.name)
        if split is None:
            draft.keep(step)
        else:
            (_add_sums if split.is_summed else _add_parts)(program, draft, split)
    return draft.finished()


def _splits(program: Program) -> dict[str, _Split]:
    """Return what runs in groups of channels, by the name of the step that reads them."""
    makers, taken = Makers(program), set[str]()
    found: dict[str, _Split] = {}
    for find in (_kept_in_parts, _summed_up):
        for step in program.steps:
            split = find(program, makers, step)
            if split is None or taken.intersection(each.name for each in (*split.steps, step)):
                continue
            found[step.name] = split
            taken.update(each.name for each in (*split.steps, step))
    return found


def _kept_in_parts(program: Program, makers: Makers, step: Step) -> _Split | None:
    """Return the groups of channels of which a step keeps little of each, None if it cannot."""
    operands = program.operands(step)
    source, result = operands.source, operands.result
    if source is None or result is None or not _keeps_little(program, step):
        return None
    maker = makers.maker(source.name)
    if maker is None or not isinstance(maker.operator, Conv2D):
        return None
    if result.alias is not None or depends(result.num_elements):
        return None
    if not makers.is_private(source.name):
        return None
    panels = _panels(program, maker)
    if not panels or not _are_constants(program, step.inputs[1:]):
        return None
    groups = max(_numbers(panels, _MOST_GROUPS))
    return _Split((maker,), step, groups, is_summed=False) if groups > 1 else None


def _numbers(panels: int, most: int) -> Iterator[int]:
    """Yield the numbers of groups of as many panels each, fewest first."""
    return (number for number in range(1, most + 1) if panels % number == 0)


def _panels(program: Program, maker: Step) -> int:
    """Return the panels of a convolution that can run in groups of them, 0 if it cannot."""
    channels = program.tensors[maker.outputs[0]].shape[-1]
    if isinstance(maker.operator, Conv2D) and maker.operator.groups > 1:
        return 0
    if depends(channels) or len(maker.inputs) > Convolution.SCALES + 1:
        return 0
    if not _are_constants(program, maker.inputs[1:]):
        return 0
    filters, *others = (program.tensors[name] if name else None for name in maker.inputs[1:])
    if filters is None or any(each is not None and each.shape != (channels,) for each in others):
        return 0
    panels = filters.shape[0] if _is_packed(filters) else channels // PANEL
    return panels if panels * PANEL == channels else 0


def _is_packed(filters: Tensor) -> bool:
    """Tell whether a filter is in panels, not as outputs, inputs or outputs, window, inputs."""
    return len(filters.shape) not in (2, 4)


def _keeps_little(program: Program, step: Step) -> bool:
    """Tell whether a step makes little of each channel of its first input, apart from others."""
    operands = program.operands(step)
    source, result = operands.source, operands.result
    assert source is not None
    assert result is not None
    channels = source.shape[-1]
    if isinstance(step.operator, DepthwiseConv2D):
        return (
            _is_by_channel(program, step)
            and source.num_elements >= _LEAST_SHARE * result.num_elements
        )
    is_average = step.operator.accumulates_rows(operands) > 0
    return is_average and result.num_elements == channels and len(step.inputs) == 1


def _is_by_channel(program: Program, step: Step) -> bool:
    """Tell whether a depthwise convolution makes one channel of each."""
    channels = program.tensors[step.inputs[0]].shape[-1]
    names = (*step.inputs[1:], *step.outputs)
    return all(program.tensors[name].shape[-1] == channels for name in names if name)


def _are_constants(program: Program, names: tuple[str, ...]) -> bool:
    """Tell whether operands are constants of their own, whose elements are known."""

    def is_own(tensor: Tensor) -> bool:
        return tensor.kind is TensorKind.CONSTANT and tensor.alias is None

    return all(
        name in program.constants and is_own(program.tensors[name]) for name in names if name
    )


def _summed_up(program: Program, makers: Makers, step: Step) -> _Split | None:
    """Return the groups of channels whose products a step adds up, None if that is no use."""
    operands = program.operands(step)
    source, result = operands.source, operands.result
    if source is None or result is None or not _adds_bytes(program, step):
        return None
    if source.num_elements > source.shape[-1]:  # bands of rows or columns hold less of it
        return None
    steps = _hidden(program, makers, source.name)
    panels = _panels(program, steps[0]) if steps else 0
    if not panels:
        return None
    sums = DType.INT32.num_bytes(result.num_elements)
    groups = 1
    for groups in _numbers(panels, _MOST_SUMMED):
        if 2 * source.size <= groups * sums:
            break
    is_of_use = sums + source.size // groups < source.size
    return _Split(steps, step, groups, is_summed=True) if is_of_use else None


def _adds_bytes(program: Program, step: Step) -> bool:
    """Tell whether a step multiplies each pixel, of bytes, with constant weights."""
    operator = step.operator
    if not isinstance(operator, Conv2D | FullyConnected):
        return False
    if len(step.inputs) > Convolution.SCALES + 1 or not _are_constants(program, step.inputs[1:]):
        return False
    if any(step.inputs[Convolution.ADDEND : Convolution.SCALES]) or not step.inputs[1]:
        return False
    source, weights, result = (program.tensors[name] for name in (*step.inputs[:2], *step.outputs))
    if any(each.dtype is not DType.INT8 or each.quantisation is None for each in (source, result)):
        return False
    stated = weights.quantisation
    if weights.dtype is not DType.INT8 or stated is None or stated.zero_point:
        return False
    if depends(result.num_elements) or (
        source.num_elements * result.shape[-1] != result.num_elements * source.shape[-1]
    ):
        return False
    return isinstance(operator, FullyConnected) or _is_pointwise(operator, weights)


def _is_pointwise(operator: Conv2D, weights: Tensor) -> bool:
    kernel = operator.kernel if _is_packed(weights) else weights.shape[1:3]
    return (
        tuple(kernel) == operator.strides == (1, 1)
        and operator.groups == 1
        and not any(operator.padding)
    )


def _hidden(program: Program, makers: Makers, name: str) -> tuple[Step, ...]:
    """Return a convolution and functions of each channel of it that make a tensor, or none."""
    found: list[Step] = []
    while makers.is_private(name) and program.tensors[name].alias is None:
        maker = makers.maker(name)
        if maker is None:
            break
        found.insert(0, maker)
        if isinstance(maker.operator, Conv2D | FullyConnected):
            return tuple(found)
        is_by_channel = isinstance(maker.operator, Unary | Convert) or (
            isinstance(maker.operator, DepthwiseConv2D) and _is_by_channel(program, maker)
        )
        if not is_by_channel or not _are_constants(program, maker.inputs[1:]):
            break
        name = maker.inputs[0]
    return ()


def _channels(
    program: Program, draft: ProgramDraft, split: _Split
) -> Iterator[tuple[int, str, str]]:
    """Add the steps before the reader for each group; yield it, its label, and what they make."""
    for step in split.steps:
        draft.drop(step.name)
    for group in range(split.groups):
        channels = program.tensors[split.reader.inputs[0]].shape[-1] // split.groups
        label = f"/channels {group * channels} to {(group + 1) * channels}"
        name = split.steps[0].inputs[0]
        for step in split.steps:
            assert isinstance(step.operator, RuntimeOperator)
            axis = 0 if step is split.steps[0] else -1
            constants = (draft.sliced(each, group, split.groups, axis) for each in step.inputs[1:])
            name = _emit(program, draft, step, (name, *constants), label, channels)
        yield group, label, name


def _emit(
    program: Program, draft: ProgramDraft, step: Step, inputs: tuple[str, ...], label: str,
    channels: int,
) -> str:  # fmt: skip
    """Add a step for some channels of its result, and return these."""
    whole = program.tensors[step.outputs[0]]
    assert isinstance(step.operator, RuntimeOperator)
    return draft.emit(
        step.operator, inputs, whole.name + label, (*whole.shape[:-1], channels), whole.dtype,
        whole.quantisation,
    )  # fmt: skip


def _add_parts(program: Program, draft: ProgramDraft, split: _Split) -> None:
    """Add a step that keeps little of each channel in groups of these."""
    step = split.reader
    source, result = (program.tensors[name] for name in (step.inputs[0], step.outputs[0]))
    parts: list[str] = []
    for group, label, image in _channels(program, draft, split):
        own = (draft.sliced(name, group, split.groups, axis=-1) for name in step.inputs[1:])
        channels = source.shape[-1] // split.groups
        parts.append(_emit(program, draft, step, (image, *own), label, channels))
    places = result.num_elements // source.shape[-1]
    joined = Copy(moves=joins(places, source.shape[-1], split.groups))
    draft.keep(replace(step, operator=joined, inputs=tuple(parts)))


def _add_sums(program: Program, draft: ProgramDraft, split: _Split) -> None:
    """Add a step that multiplies all channels of each pixel in groups of these."""
    step = split.reader
    result, operator = program.tensors[step.outputs[0]], step.operator
    assert isinstance(operator, Conv2D | FullyConnected)
    bias = step.inputs[2] if len(step.inputs) > 2 else ""
    sums = ""
    for group, label, image in _channels(program, draft, split):
        weights = _of_inputs(program, draft, step.inputs[1], group, split.groups)
        if group == split.groups - 1:
            scales = step.inputs[Convolution.SCALES :]
            draft.keep(replace(step, inputs=(image, weights, bias, sums, *scales)))
            return
        sums = draft.emit(
            replace(operator, min=-inf, max=inf),
            (image, weights, "", sums) if sums else (image, weights),
            result.name + label, result.shape, DType.INT32,
        )  # fmt: skip


def _of_inputs(program: Program, draft: ProgramDraft, name: str, group: int, groups: int) -> str:
    """Return the weights for a group of the inputs."""
    whole = program.tensors[name]
    if not _is_packed(whole):
        return draft.sliced(name, group, groups, axis=-1)
    share = np.array_split(program.constants[name][:, 1:], groups, axis=1)[group]
    quads = share.reshape(*share.shape[:2], PANEL, -1)
    sums = quads.sum(axis=(1, 3), dtype="<i4").view(np.int8).reshape(len(share), 1, -1)
    return draft.constant(np.concatenate([sums, share], axis=1), name, whole.quantisation)

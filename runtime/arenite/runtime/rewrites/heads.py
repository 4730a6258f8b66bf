"""Compute attention some heads at a time, so that keys and values of a few are kept at once.

Attention needs all keys and values of a head before its first row. Where products with constant
weights make queries, keys and values, those of some heads are some columns of the product: some of
its panels. A block then keeps its tokens, the results of heads that are done, and the keys and
values of the present ones. Every element is computed as before.
"""

from dataclasses import replace

from arenite.planner import Program, Step, TensorKind
from arenite.planner.sizes import depends
from arenite.runtime.operators.attention import Attention, Rotary
from arenite.runtime.operators.base import PANEL, RuntimeOperator
from arenite.runtime.operators.halves import SHORT_FLOATS
from arenite.runtime.operators.linear import FullyConnected
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move
from arenite.runtime.rewrites.drafting import ProgramDraft
from arenite.runtime.rewrites.scores import Makers

_MOST_GROUPS = 4
"""Groups of heads: with n of them a block keeps 2 + 1 / n times its tokens, not three times. More
save little, and what queries, keys and values are made of is made again for each group."""


def split_heads(program: Program) -> Program:
    """Return the program with attention in groups of heads, itself if it has none to split."""
    splitting = _Splitting(program)
    for step in program.steps:
        splitting.add(step)
    return splitting.finished()


class _Splitting:
    def __init__(self, program: Program) -> None:
        self._old = program
        self._makers = Makers(program)
        self._draft = ProgramDraft(program)
        self._has_split = False

    def finished(self) -> Program:
        return self._draft.finished() if self._has_split else self._old

    def add(self, step: Step) -> None:
        """Add a step, in groups of heads if it can be split."""
        operator = step.operator
        if isinstance(operator, Attention):
            groups = max(n for n in range(1, _MOST_GROUPS + 1) if operator.key_heads % n == 0)
            if groups > 1 and self._can_split(step, operator, groups):
                self._split(step, operator, groups)
                return
        self._draft.keep(step)

    def _can_split(self, step: Step, operator: Attention, groups: int) -> bool:
        tensors = self._old.tensors
        if tensors[step.outputs[0]].shape[0] != 1 or tensors[step.outputs[0]].alias is not None:
            return False
        if len(step.inputs) > operator.ADDEND and step.inputs[operator.ADDEND]:
            heads = tensors[step.inputs[operator.ADDEND]].shape[2]
            if depends(heads) or heads != 1:
                return False
        operands = step.inputs[: operator.ADDEND]
        return len({*operands}) == len(operands) and all(
            self._has_columns(name, groups) for name in operands
        )

    def _has_columns(self, name: str, groups: int) -> bool:
        """Tell whether a tensor is made for one step, and some columns of it can be made alone."""
        maker, tensor = self._makers.maker(name), self._old.tensors[name]
        if maker is None or not self._makers.is_private(name) or len(tensor.shape) != 3:
            return False
        if isinstance(maker.operator, Rotary):
            return maker.operator.heads % groups == 0 and self._has_columns(
                maker.inputs[0], groups
            )
        if not isinstance(maker.operator, FullyConnected) or any(
            self._old.tensors[each].kind is not TensorKind.CONSTANT
            for each in maker.inputs[1:]
            if each
        ):
            return False
        weights, made = (self._old.tensors[each] for each in (maker.inputs[1], maker.outputs[0]))
        is_packed = len(weights.shape) == 3
        return (
            (weights.dtype is made.dtype or weights.dtype in SHORT_FLOATS)
            and made.shape == tensor.shape
            and tensor.shape[2] % (groups * (PANEL if is_packed else 1)) == 0
        )

    def _split(self, step: Step, operator: Attention, groups: int) -> None:
        some = replace(
            operator, heads=operator.heads // groups, key_heads=operator.key_heads // groups
        )
        result = self._old.tensors[step.outputs[0]]
        batch, tokens, width = result.shape
        parts: list[str] = []
        for group in range(groups):
            keys = self._columns(step.inputs[operator.KEYS], group, groups)
            values = self._columns(step.inputs[operator.VALUES], group, groups)
            queries = self._columns(step.inputs[operator.QUERIES], group, groups)
            parts.append(
                self._draft.emit(
                    some,
                    (queries, keys, values, *step.inputs[operator.ADDEND :]),
                    _label(step.outputs[0], group),
                    (batch, tokens, width // groups),
                    result.dtype,
                    result.quantisation,
                )
            )
        joined = Copy(moves=joins(tokens, width, groups))
        self._draft.keep(Step(step.name, joined, tuple(parts), step.outputs))
        self._has_split = True

    def _columns(self, name: str, group: int, groups: int) -> str:
        """Return a group's columns of a tensor, made by a step of their own."""
        maker, tensor = self._makers.maker(name), self._old.tensors[name]
        assert maker is not None
        operator: RuntimeOperator
        if isinstance(maker.operator, Rotary):
            operator = replace(maker.operator, heads=maker.operator.heads // groups)
            inputs = (self._columns(maker.inputs[0], group, groups), *maker.inputs[1:])
        else:
            assert isinstance(maker.operator, FullyConnected)
            operator = maker.operator
            constants = (self._draft.share(each, group, groups) for each in maker.inputs[1:])
            inputs = (maker.inputs[0], *constants)
        shape = (*tensor.shape[:-1], tensor.shape[-1] // groups)
        return self._draft.emit(
            operator, inputs, _label(name, group), shape, tensor.dtype, tensor.quantisation
        )


def joins(tokens: int, width: int, groups: int) -> tuple[Move, ...]:
    """Return the moves that put the columns of groups side by side."""
    size = width // groups
    return tuple(
        Move(
            input=group,
            shape=(tokens, size),
            input_strides=(size, 1),
            output_start=group * size,
            output_strides=(width, 1),
        )
        for group in range(groups)
    )


def _label(name: str, group: int) -> str:
    return f"{name}/heads {group}"

"""Keep the results between steps as 16-bit floats, in half the bytes.

Steps compute with 32 bits: the core converts a few rows of their operands at a time, and rounds
each result once; some compute with 16 on a processor that does. Inputs, outputs and states of the
program keep their types.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum

import numpy as np

from arenite.planner import DType, Plan, Problem, Program, Step, Tensor, TensorKind
from arenite.planner.operators import Operands
from arenite.planner.units import align_up
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.blocks import BlockGather, BlockProduct
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.halves import has_halves, is_half, scratch_of_all
from arenite.runtime.operators.loops import While
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.reduction import CumulativeSum
from arenite.runtime.operators.special import DetectionPostProcess, External, NonMaxSuppression
from arenite.runtime.rewrites.tiles import largest_gap

_EXACT = (
    BlockGather, BlockProduct, CumulativeSum, DetectionPostProcess, External, NonMaxSuppression,
    While,
)  # fmt: skip
"""Operators whose operands stay as they are: weights in blocks, sums that grow, coordinates of
boxes, what loops carry, and what another runtime computes."""

_ALIGNMENT = 64
"""Bytes that sizes of records are rounded up to."""
_CACHED = 128 * 1024
"""Bytes of a filter that are worth converting at a time: more would leave the second cache."""
_WORTH_IT = 0.5
"""Most working memory of a step, over the bytes that its operands save."""


class Activations(StrEnum):
    """What the results between steps are kept as."""

    FP32 = "fp32"
    """32-bit floats, as operators compute."""
    FP16 = "fp16"
    """16-bit floats of IEEE 754."""


def keep_halves(program: Program, names: Collection[str] = ()) -> Program:
    """Return the program with its 32-bit floats between steps as 16-bit floats.

    They stay as they are where a step would save nothing: those that cannot run by rows convert
    all of their operands, which take half the bytes of the largest step at most.

    Args:
        program: A program.
        names: The tensors that may be, also those that lowering made of them; () for all.

    Cost: O(steps x rounds), a round for each chain of steps that moves what cannot be kept so.
    """
    halves = _Halves(program, names)
    halves.settle()
    return replace(
        program,
        tensors={name: halves.tensor(name) for name in program.tensors},
        steps=tuple(map(halves.step, program.steps)),
    )


def with_room(program: Program, problem: Problem, plan: Plan) -> tuple[Problem, Plan]:
    """Return a plan with more working memory for steps that convert 16-bit floats.

    They take the gaps that a plan has at their turn: more rows at a time convert the weights less
    often. The arena keeps its size.

    Args:
        program: A program in its final order, its storage shared.
        problem: Its records.
        plan: A plan of these.
    """
    memory = problem.memories[0].name
    lying = [each for each in problem.rectangles(plan.offsets) if each.memory == memory]
    records, offsets = list(problem.records), list(plan.offsets)
    for index, record in enumerate(records):
        step = program.steps[record.start] if program.steps and not record.tensors else None
        if step is None or not isinstance(step.operator, RuntimeOperator):
            continue
        operands = program.operands(step)
        if not has_halves(operands) or step.operator.moves_halves:
            continue
        wanted = align_up(scratch_of_all(step.operator, operands, _CACHED), _ALIGNMENT)
        live = sorted(
            (each.offset, each.offset + each.size)
            for each in lying
            if each.start <= record.start < each.end and each.name != record.name
        )
        gap, size = largest_gap(live, plan.heights[0])
        if record.size < min(size, wanted):
            records[index] = replace(record, size=min(size, wanted))
            offsets[index] = gap
    grown = replace(problem, records=tuple(records))
    bounds = tuple(map(max, plan.lower_bounds, grown.lower_bounds))
    return grown, replace(plan, offsets=tuple(offsets), lower_bounds=bounds)


class _Halves:
    def __init__(self, program: Program, names: Collection[str]) -> None:
        self._program = program
        self._storages: dict[str, list[str]] = defaultdict(list)
        for name in program.tensors:
            self._storages[program.root(name)[0]].append(name)
        varying = _varying(program)
        self._kept = {
            root
            for root, members in self._storages.items()
            if all(_may_be_half(program.tensors[name]) for name in members)
            and root in varying
            and (not names or any(_is_among(names, name) for name in members))
        }
        self._limit = (
            max((_bytes_of(program.operands(step)) for step in program.steps), default=0) // 2
        )

    def tensor(self, name: str) -> Tensor:
        """Return a tensor as it is kept."""
        tensor = self._program.tensors[name]
        if self._program.root(name)[0] not in self._kept:
            return tensor
        alias = tensor.alias
        if alias is not None:
            alias = replace(alias, offset=alias.offset // 2)
        return replace(tensor, dtype=DType.FLOAT16, alias=alias)

    def step(self, step: Step) -> Step:
        """Return a step that reads and writes the tensors as they are kept."""
        operator = step.operator
        if isinstance(operator, Copy) and operator.fill and self._has_halves(step):
            fill = np.frombuffer(operator.fill, np.float32).astype(np.float16).tobytes()
            return replace(step, operator=replace(operator, fill=fill))
        return step

    def settle(self) -> None:
        """Leave tensors as they are until each step can run."""
        left: bool = True
        while left:
            left = False
            for step in self._program.steps:
                if self._has_halves(step) and not self._runs(step):
                    roots = {self._program.root(name)[0] for name in (*step.reads, *step.writes)}
                    left = left or not self._kept.isdisjoint(roots)
                    self._kept -= roots

    def _has_halves(self, step: Step) -> bool:
        return any(is_half(self.tensor(name)) for name in (*step.reads, *step.writes))

    def _runs(self, step: Step) -> bool:
        operator = step.operator
        if not isinstance(operator, RuntimeOperator) or isinstance(operator, _EXACT):
            return False
        operands = self._operands(step)
        source, result = operands.source, operands.result
        if isinstance(operator, Convert):
            return result is not None and result.dtype in (DType.FLOAT16, DType.FLOAT32)
        if operator.moves_halves:
            moves_all = isinstance(operator, Copy)
            moved = (*operands.inputs, *operands.outputs) if moves_all else (source, result)
            return all(map(is_half, moved))
        taken, scratch = _bytes_of(operands), operator.scratch(operands)
        saved = _bytes_of(self._program.operands(step)) - taken
        return taken + scratch <= self._limit or scratch <= saved * _WORTH_IT

    def _operands(self, step: Step) -> Operands:
        return Operands(
            tuple(self.tensor(name) if name else None for name in step.inputs),
            tuple(self.tensor(name) if name else None for name in step.outputs),
        )


def _varying(program: Program) -> set[str]:
    """Return the storages that depend on an input or a state; others are constants of a size."""
    given = (TensorKind.INPUT, TensorKind.STATE)
    found = {name for name, tensor in program.tensors.items() if tensor.kind in given}
    for step in program.steps:
        if any(program.root(name)[0] in found for name in step.reads):
            found.update(program.root(name)[0] for name in step.writes)
    return found


def _is_among(names: Collection[str], name: str) -> bool:
    """Tell whether a tensor is one of these, or named after one: `x/transposed` after `x`."""
    while name not in names:
        name, cut, _ = name.rpartition("/")
        if not cut:
            return False
    return True


def _may_be_half(tensor: Tensor) -> bool:
    return tensor.dtype is DType.FLOAT32 and tensor.kind is TensorKind.ACTIVATION


def _bytes_of(operands: Operands) -> int:
    """Return the bytes of the operands of a step that are made in the run."""
    return sum(
        tensor.size
        for tensor in (*operands.inputs, *operands.outputs)
        if tensor is not None and tensor.kind is not TensorKind.CONSTANT
    )

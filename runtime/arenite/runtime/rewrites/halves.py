"""Keep the results between steps as 16-bit floats, in half the bytes.

Steps still compute with 32 bits: the core converts a few rows of their operands at a time, and
rounds each result once. Inputs, outputs and states of the program keep their types.
"""

from collections import defaultdict
from dataclasses import replace
from enum import StrEnum

import numpy as np

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.operators import Operands
from arenite.runtime.operators.base import RuntimeOperator
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.halves import is_half
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.reduction import CumulativeSum
from arenite.runtime.operators.special import DetectionPostProcess, External, NonMaxSuppression

_EXACT = (CumulativeSum, DetectionPostProcess, External, NonMaxSuppression)
"""Operators whose operands stay as they are: sums that grow, coordinates of boxes, and what
another runtime computes."""

_WORTH_IT = 0.75
"""Most of its bytes that a step may still need, for what it saves."""


class Activations(StrEnum):
    """What the results between steps are kept as."""

    FP32 = "fp32"
    """32-bit floats, as operators compute."""
    FP16 = "fp16"
    """16-bit floats of IEEE 754."""


def keep_halves(program: Program) -> Program:
    """Return the program with its 32-bit floats between steps as 16-bit floats.

    They stay as they are where a step would save nothing: those that cannot run by rows convert
    all of their operands, which take half the bytes of the largest step at most.

    Cost: O(steps x rounds), a round for each chain of steps that moves what cannot be kept so.
    """
    halves = _Halves(program)
    halves.settle()
    return replace(
        program,
        tensors={name: halves.tensor(name) for name in program.tensors},
        steps=tuple(map(halves.step, program.steps)),
    )


class _Halves:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._storages: dict[str, list[str]] = defaultdict(list)
        for name in program.tensors:
            self._storages[program.root(name)[0]].append(name)
        self._kept = {
            root
            for root, names in self._storages.items()
            if all(_may_be_half(program.tensors[name]) for name in names)
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
                    self._kept -= roots
                    left = True

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
            return all(map(is_half, operands.inputs if moves_all else (source,))) and is_half(
                result
            )
        wide = _bytes_of(self._program.operands(step))
        return _bytes_of(operands) + operator.scratch(operands) <= max(
            self._limit, wide * _WORTH_IT
        )

    def _operands(self, step: Step) -> Operands:
        return Operands(
            tuple(self.tensor(name) if name else None for name in step.inputs),
            tuple(self.tensor(name) if name else None for name in step.outputs),
        )


def _may_be_half(tensor: Tensor) -> bool:
    return tensor.dtype is DType.FLOAT32 and tensor.kind is TensorKind.ACTIVATION


def _bytes_of(operands: Operands) -> int:
    """Return the bytes of the operands of a step that are made in the run."""
    return sum(
        tensor.size
        for tensor in (*operands.inputs, *operands.outputs)
        if tensor is not None and tensor.kind is not TensorKind.CONSTANT
    )

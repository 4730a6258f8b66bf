"""Keep caches as 16-bit floats: keys and values in half the bytes.

A run rounds the rows that it adds once, and attention converts the keys and values that it reads
a block at a time::

    new --> Copy --> rows of a state     becomes     new --> Convert --> rows of a state of halves
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.programs import Names
from arenite.planner.sizes import same
from arenite.planner.tensors import Alias
from arenite.runtime.operators.attention import Attention
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.movement import Copy


class Caches(StrEnum):
    """What caches of keys and values are kept as."""

    FP32 = "fp32"
    """32-bit floats, as attention computes."""
    FP16 = "fp16"
    """16-bit floats of IEEE 754."""


def keep_caches(program: Program, kind: Caches) -> Program:
    """Return a program whose caches are of this type, of one whose caches are states that grow.

    Raises:
        UnsupportedModelError: It has no cache, or something else than attention reads one.

    Cost: O(operands of the steps).
    """
    return program if kind is Caches.FP32 else _Halving(program).halved()


class _Halving:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._names = Names(program.tensors)
        self._caches = {
            name for name in program.rows if program.tensors[name].dtype is DType.FLOAT32
        }
        if not self._caches:
            raise UnsupportedModelError(
                program.name,
                "has no cache of 32-bit floats to keep as 16-bit floats; state a dimension that "
                "grows, such as --dim past_sequence_length=0..1023+, or leave out --cache",
            )
        self._kept = self._caches | self._copies()
        self._tensors: dict[str, Tensor] = {}

    def halved(self) -> Program:
        """Return the program.

        Raises:
            UnsupportedModelError: Something else than attention reads a cache.
        """
        for step in self._program.steps:
            self._check(step)
        halves = {
            name: _half(tensor)
            for name, tensor in self._program.tensors.items()
            if self._root(name) in self._kept
        }
        steps = tuple(each for step in self._program.steps for each in self._rounded(step))
        tensors = {**self._program.tensors, **self._tensors, **halves}
        return replace(self._program, tensors=tensors, steps=steps)

    def _root(self, name: str) -> str:
        return self._program.root(name)[0]

    def _copies(self) -> set[str]:
        """Return the tensors that are nothing but moved elements of caches.

        Attention reads such a copy where the batch is above 1.
        """
        return {
            self._root(step.outputs[0])
            for step in self._program.steps
            if isinstance(step.operator, Copy)
            and all(self._root(name) in self._caches for name in step.inputs)
            and self._program.tensors[self._root(step.outputs[0])].kind is TensorKind.ACTIVATION
        }

    def _check(self, step: Step) -> None:
        for position, name in enumerate(step.inputs):
            if not name or self._root(name) not in self._kept:
                continue
            operator = step.operator
            if isinstance(operator, Attention) and operator.takes_halves(position):
                continue
            if isinstance(operator, Copy) and self._root(step.outputs[0]) in self._kept:
                continue
            raise UnsupportedModelError(
                self._root(name),
                f"cannot be kept as 16-bit floats: step {step.name!r} reads it, which is no "
                "attention; leave out --cache",
            )

    def _rounded(self, step: Step) -> Iterator[Step]:
        """Yield the steps that round what a step adds to a cache, or the step as it is."""
        if not any(self._root(name) in self._caches for name in step.outputs):
            yield step
            return
        (made,) = step.outputs
        rows = self._program.tensors[made]
        source = self._whole_source(step, rows)
        if not source:
            wide = replace(
                rows, name=self._names.take(f"{made}/32 bits"), kind=TensorKind.ACTIVATION,
                alias=None,
            )  # fmt: skip
            self._tensors[wide.name] = wide
            yield replace(step, outputs=(wide.name,))
            source = wide.name
        yield Step(self._names.take(f"{step.name}/rounded"), Convert(), (source,), (made,))

    def _whole_source(self, step: Step, rows: Tensor) -> str:
        """Return a view of what a step moves as one run of bytes, all of it; else ""."""
        operator = step.operator
        if not isinstance(operator, Copy) or len(operator.moves) != 1 or len(step.inputs) != 1:
            return ""
        (move,), source = operator.moves, self._program.tensors[step.inputs[0]]
        is_whole = move.is_whole(source.num_elements) and same(
            source.num_elements, rows.num_elements
        )
        if not is_whole or source.dtype is not DType.FLOAT32:
            return ""
        root, offset = self._program.root(source.name)
        view = replace(
            rows, name=self._names.take(f"{source.name}/rows"), kind=TensorKind.ACTIVATION,
            alias=Alias(root, offset),
        )  # fmt: skip
        self._tensors[view.name] = view
        return view.name


def _half(tensor: Tensor) -> Tensor:
    alias = tensor.alias
    if alias is not None:
        alias = replace(alias, offset=alias.offset // 2)
    return replace(tensor, dtype=DType.FLOAT16, alias=alias)

"""Keep caches as 16-bit floats or as 8-bit integers: keys and values in fewer bytes.

A run rounds the rows that it adds once, and attention converts the keys and values that it reads
a block at a time::

    new --> Copy --> rows of a state     becomes     new --> Convert --> rows of a state of halves

or CacheRows in place of Convert, where a row of a head is integers and the scales of their blocks.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from arenite.planner import DType, Program, Step, Tensor, TensorKind
from arenite.planner.errors import UnsupportedModelError
from arenite.planner.programs import Names
from arenite.planner.sizes import same
from arenite.planner.tensors import Alias
from arenite.runtime.operators.attention import Attention, CacheRows
from arenite.runtime.operators.base import FLOAT_BYTES, RuntimeOperator
from arenite.runtime.operators.elementwise import Convert
from arenite.runtime.operators.movement import Copy
from arenite.runtime.operators.moves import Move


class Caches(StrEnum):
    """What caches of keys and values are kept as."""

    FP32 = "fp32"
    """32-bit floats, as attention computes."""
    FP16 = "fp16"
    """16-bit floats of IEEE 754."""
    INT8 = "int8"
    """8-bit integers in blocks of up to 32, each with a scale of 16 bits."""


def keep_caches(program: Program, kind: Caches) -> Program:
    """Return a program whose caches are of this type, of one whose caches are states that grow.

    Raises:
        UnsupportedModelError: It has no cache, or something else than attention reads one.

    Cost: O(operands of the steps).
    """
    return program if kind is Caches.FP32 else _Keeping(program, kind).kept()


class _Rows:
    """How the rows of heads of a cache are kept.

    Attributes:
        width: Elements of the row of a head.
        operator: Makes the rows of floats.
    """

    def __init__(self, cache: str, kind: Caches, width: int) -> None:
        self.width = width
        self.operator: RuntimeOperator = Convert()
        self._cache = cache
        self._dtype, self._columns = DType.FLOAT16, width
        if kind is Caches.INT8:
            self.operator = rounding = CacheRows(width=width)
            self._dtype, self._columns = DType.INT8, rounding.row_bytes

    def tensor(self, floats: Tensor) -> Tensor:
        """Return a tensor of rows of floats as it is kept."""
        alias = floats.alias
        if alias is not None:
            elements = self._scaled(alias.offset // FLOAT_BYTES)
            alias = replace(alias, offset=self._dtype.num_bytes(elements))
        shape = (*floats.shape[:-1], self._scaled(floats.shape[-1]))
        return replace(floats, dtype=self._dtype, shape=shape, alias=alias)

    def move(self, move: Move) -> Move:
        """Return the move of the same rows as they are kept."""
        if self._columns == self.width:
            return move
        axes: list[tuple[int, int, int]] = []
        moves_rows = False
        for axis in zip(move.shape, move.input_strides, move.output_strides, strict=True):
            length, source, target = axis
            if same(length, 1):
                axes.append(axis)
            elif same(source, 1) and same(target, 1):
                axes.append((self._scaled(length), source, target))
                moves_rows = True
            else:
                axes.append((length, self._scaled(source), self._scaled(target)))
        if not moves_rows:
            raise self._refused()
        shape, sources, targets = zip(*axes, strict=True)
        return replace(
            move, shape=shape,
            input_start=self._scaled(move.input_start), input_strides=sources,
            output_start=self._scaled(move.output_start), output_strides=targets,
        )  # fmt: skip

    def _scaled(self, elements: int) -> int:
        if self._columns == self.width:
            return elements
        if not same(elements % self.width, 0):
            raise self._refused()
        return elements // self.width * self._columns

    def _refused(self) -> UnsupportedModelError:
        return UnsupportedModelError(
            self._cache,
            "cannot be kept as int8: the elements of a head do not follow one another; "
            "take --cache fp16",
        )


class _Keeping:
    def __init__(self, program: Program, kind: Caches) -> None:
        self._program = program
        self._kind = kind
        self._names = Names(program.tensors)
        self._caches = {
            name for name in program.rows if program.tensors[name].dtype is DType.FLOAT32
        }
        if not self._caches:
            raise UnsupportedModelError(
                program.name,
                f"has no cache of 32-bit floats to keep as {kind}; state a dimension that "
                "grows, such as --dim past_sequence_length=0..1023+, or leave out --cache",
            )
        self._moved = {
            self._root(step.outputs[0]): self._root(step.inputs[0])
            for step in program.steps
            if self._moves_caches(step)
        }
        self._rows: dict[str, _Rows] = {}
        self._tensors: dict[str, Tensor] = {}

    def kept(self) -> Program:
        """Return the program.

        Raises:
            UnsupportedModelError: Something else than attention reads a cache.
        """
        for step in self._program.steps:
            self._note(step)
        tensors = {
            name: self._rows[root].tensor(tensor)
            for name, tensor in self._program.tensors.items()
            if (root := self._cache_of(self._root(name))) in self._rows
        }
        steps = tuple(each for step in self._program.steps for each in self._rounded(step))
        return replace(
            self._program, tensors={**self._program.tensors, **self._tensors, **tensors},
            steps=steps,
        )  # fmt: skip

    def _root(self, name: str) -> str:
        return self._program.root(name)[0]

    def _cache_of(self, root: str) -> str:
        """Return the cache that a tensor is, or is a copy of."""
        return self._moved.get(root, root)

    def _moves_caches(self, step: Step) -> bool:
        """Tell whether a step makes a tensor of nothing but moved elements of one cache.

        Attention reads such a copy where the batch is above 1.
        """
        return (
            isinstance(step.operator, Copy)
            and all(self._root(name) in self._caches for name in step.inputs)
            and len({self._root(name) for name in step.inputs}) == 1
            and self._program.tensors[self._root(step.outputs[0])].kind is TensorKind.ACTIVATION
        )

    def _note(self, step: Step) -> None:
        """Note how the caches are kept that a step reads."""
        operator = step.operator
        for position, name in enumerate(step.inputs):
            cache = self._cache_of(self._root(name)) if name else ""
            if cache not in self._caches or self._root(step.outputs[0]) in self._moved:
                continue
            if not isinstance(operator, Attention) or not operator.takes_halves(position):
                raise self._refused(cache, f"step {step.name!r} reads it, which is no attention")
            depths = self._program.tensors[
                step.inputs[0] if position == Attention.KEYS else step.outputs[0]
            ]
            width = depths.shape[-1] // operator.heads
            rows = self._rows.setdefault(cache, _Rows(cache, self._kind, width))
            if rows.width != width:
                raise self._refused(cache, f"step {step.name!r} reads heads of another width")

    def _refused(self, cache: str, reason: str) -> UnsupportedModelError:
        return UnsupportedModelError(
            cache, f"cannot be kept as {self._kind}: {reason}; leave out --cache"
        )

    def _rounded(self, step: Step) -> Iterator[Step]:
        """Yield the steps that round what a step adds to a cache, or the step as it is kept."""
        operator = step.operator
        if self._root(step.outputs[0]) in self._moved:
            assert isinstance(operator, Copy)
            rows = self._rows.get(self._moved[self._root(step.outputs[0])])
            moves = operator.moves if rows is None else tuple(map(rows.move, operator.moves))
            yield replace(step, operator=replace(operator, moves=moves))
            return
        if not any(self._root(name) in self._rows for name in step.outputs):
            yield step
            return
        (made,) = step.outputs
        floats = self._program.tensors[made]
        source = self._whole_source(step, floats)
        if not source:
            wide = replace(
                floats, name=self._names.take(f"{made}/32 bits"), kind=TensorKind.ACTIVATION,
                alias=None,
            )  # fmt: skip
            self._tensors[wide.name] = wide
            yield replace(step, outputs=(wide.name,))
            source = wide.name
        rounding = self._rows[self._root(made)].operator
        yield Step(self._names.take(f"{step.name}/rounded"), rounding, (source,), (made,))

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

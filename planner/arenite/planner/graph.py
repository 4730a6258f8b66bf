"""The graph of a model: tensors and operators, free of any file format.

Operators are kept in topological order; a **step** is an operator's index in that order.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self, TypeAlias

from arenite.planner.dtypes import DType
from arenite.planner.errors import ModelError, OrderError

AttributeValue: TypeAlias = (
    int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
)


class TensorKind(StrEnum):
    """What a tensor is to the graph, which decides how long it lives."""

    INPUT = "input"
    """Written by the caller before step 0."""
    OUTPUT = "output"
    """Read by the caller after the last step."""
    ACTIVATION = "activation"
    """Made and used between two steps."""
    CONSTANT = "constant"
    """Known before the run; never in the arena."""
    STATE = "state"
    """Kept from one run to the next; in the arena throughout."""
    SCRATCH = "scratch"
    """Working memory of one operator."""


@dataclass(frozen=True, slots=True)
class Alias:
    """A tensor's storage lies inside another's.

    Attributes:
        tensor: The tensor whose storage is used.
        offset: First byte inside that storage.
    """

    tensor: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value that flows through the graph.

    Attributes:
        name: Unique in the graph.
        dtype: Element type.
        shape: Every dimension known, outermost first.
        kind: What it is to the graph.
        alias: Where it lies when it has no storage of its own.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    kind: TensorKind = TensorKind.ACTIVATION
    alias: Alias | None = None

    def __post_init__(self) -> None:
        if any(dimension < 0 for dimension in self.shape):
            raise ModelError(f"tensor {self.name!r}: negative dimension in {self.shape}")

    @property
    def size(self) -> int:
        """Bytes of the packed elements."""
        return self.dtype.num_bytes(math.prod(self.shape))


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of the run.

    Attributes:
        name: Unique in the graph.
        op_type: `Conv`, `CONV_2D`, `com.microsoft.FusedConv`: the format's own name.
        inputs: Tensor names by position; "" where an optional input is left out.
        outputs: Tensor names by position; "" where an optional output is left out.
        attributes: What the format states beside the tensors.
        scratch: Bytes needed while the operator runs, and only then.
    """

    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    scratch: int = 0

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the tensors read, each once, in order of first mention."""
        return _present(self.inputs)

    @property
    def writes(self) -> tuple[str, ...]:
        """Names of the tensors written, each once, in order of first mention."""
        return _present(self.outputs)


def _present(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True, slots=True)
class Graph:
    """A model: its tensors, its operators in the order they run, and its boundary.

    Attributes:
        name: For people.
        tensors: By name, in order of first appearance.
        operators: In a topological order.
        inputs: Tensors the caller writes.
        outputs: Tensors the caller reads.
        notes: What the importer decided and the user should know.

    Raises:
        ModelError: A name is missing or used twice, an operator reads what is not yet
            written, or an alias does not fit the storage it names.
    """

    name: str
    tensors: Mapping[str, Tensor]
    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_boundary()
        self._check_operators()
        for tensor in self.tensors.values():
            if tensor.alias is not None:
                self._check_alias(tensor)

    @classmethod
    def of(
        cls,
        name: str,
        tensors: Iterable[Tensor],
        operators: Iterable[Operator],
        inputs: Sequence[str],
        outputs: Sequence[str],
        notes: Sequence[str] = (),
    ) -> Self:
        """Return the graph of these parts.

        Raises:
            ModelError: Two tensors share a name, or the parts do not fit together.
        """
        by_name: dict[str, Tensor] = {}
        for tensor in tensors:
            if tensor.name in by_name:
                raise ModelError(f"graph {name!r}: two tensors are named {tensor.name!r}")
            by_name[tensor.name] = tensor
        return cls(name, by_name, tuple(operators), tuple(inputs), tuple(outputs), tuple(notes))

    def reordered(self, order: Sequence[str]) -> "Graph":
        """Return the graph with its operators in the order of these names.

        Raises:
            OrderError: The names are not a permutation of the operators, or an operator
                would read what is not yet written.
        """
        by_name = {operator.name: operator for operator in self.operators}
        if len(order) != len(by_name) or set(order) != set(by_name):
            raise OrderError(
                f"graph {self.name!r}: the order must name each of its "
                f"{len(by_name)} operators once"
            )
        try:
            return replace(self, operators=tuple(by_name[name] for name in order))
        except ModelError as error:
            raise OrderError(str(error)) from error

    def root(self, name: str) -> tuple[str, int]:
        """Return the tensor in whose storage `name` lies, and the byte it starts at."""
        offset = 0
        while (alias := self.tensors[name].alias) is not None:
            name, offset = alias.tensor, offset + alias.offset
        return name, offset

    def _check_boundary(self) -> None:
        for name in (*self.inputs, *self.outputs):
            if name not in self.tensors:
                raise ModelError(
                    f"graph {self.name!r}: boundary tensor {name!r} is not in the graph"
                )

    def _check_operators(self) -> None:
        ready = set(self.inputs)
        ready.update(
            tensor.name
            for tensor in self.tensors.values()
            if tensor.kind in (TensorKind.CONSTANT, TensorKind.STATE)
        )
        seen: set[str] = set()
        for operator in self.operators:
            if operator.name in seen:
                raise ModelError(f"graph {self.name!r}: two operators are named {operator.name!r}")
            seen.add(operator.name)
            for name in (*operator.reads, *operator.writes):
                if name not in self.tensors:
                    raise ModelError(
                        f"operator {operator.name!r}: tensor {name!r} is not in the graph"
                    )
            for name in operator.reads:
                if name not in ready:
                    raise ModelError(
                        f"operator {operator.name!r} reads {name!r} before it is written"
                    )
            for name in operator.writes:
                if name in ready and self.tensors[name].kind is not TensorKind.STATE:
                    raise ModelError(f"operator {operator.name!r} writes {name!r} a second time")
                ready.add(name)
        for name in self.outputs:
            if name not in ready:
                raise ModelError(f"graph {self.name!r}: output {name!r} is never written")

    def _check_alias(self, tensor: Tensor) -> None:
        seen = {tensor.name}
        inner = tensor
        while inner.alias is not None:
            target = self.tensors.get(inner.alias.tensor)
            if target is None or target.name in seen:
                raise ModelError(
                    f"tensor {tensor.name!r}: its alias leads to "
                    f"{inner.alias.tensor!r}, which is not another tensor of the graph"
                )
            if inner.alias.offset < 0 or inner.alias.offset + inner.size > target.size:
                raise ModelError(
                    f"tensor {inner.name!r}: bytes {inner.alias.offset} to "
                    f"{inner.alias.offset + inner.size} are not inside {target.name!r} "
                    f"({target.size} B)"
                )
            seen.add(target.name)
            inner = target

"""Resource variables of a TFLite file, seen as the states that they are.

A variable has no tensor of its own. Each subgraph makes a handle of it by its name, reads it into
a tensor and assigns a tensor to it; a subgraph that runs once gives it its first value::

    main   VAR_HANDLE "s" -> h     READ_VARIABLE h -> x     ...     ASSIGN_VARIABLE h, y
           CALL_ONCE ---.
    init                `-> VAR_HANDLE "s" -> h     ASSIGN_VARIABLE h, constant

As a state it is one tensor, of the type and shape of what is read and assigned. Reading takes the
state, assigning makes it, and the constant is its initial value, so handles and `CALL_ONCE` need
no step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from arenite.planner.importers.tflite.file import FileOperator, FileSubgraph, FileTensor

Place: TypeAlias = tuple[int, int]
"""A subgraph, and a tensor or operator of it, by index."""

HANDLE, READ, ASSIGN, ONCE = "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"
_USES = frozenset({READ, ASSIGN})
_OF_VARIABLES = frozenset({HANDLE, *_USES})


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that is a state.

    Attributes:
        value: Where a tensor is that has its type, shape and quantisation.
        start: Where the constant is that it starts with; None if it starts as zeros.
    """

    value: Place
    start: Place | None


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of the first subgraph.

    Attributes:
        by_handle: The variable of each handle, by the handle's index in the first subgraph.
        first_handle: The first handle of the same variable, by handle.
        skipped: Operators of the first subgraph that need no step, by index.
        refusal: Operator and reason why no variable is seen as a state; None if all are.
    """

    by_handle: Mapping[int, Variable] = field(default_factory=dict)
    first_handle: Mapping[int, int] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    refusal: tuple[str, str] | None = None

    @classmethod
    def of(cls, subgraphs: Sequence[FileSubgraph]) -> "Variables":
        """Return the variables of a file; none of them if one is not clearly a state.

        Cost: O(operators and their operands).
        """
        try:
            return _Search(subgraphs).found()
        except _NoStateError as reason:
            return cls(refusal=(reason.operator, reason.reason))

    def stated(self, subgraph: FileSubgraph, position: int) -> FileTensor:
        value = subgraph.tensors[self.by_handle[position].value[1]]
        name = subgraph.tensors[position].name
        return replace(value, name=name, variable=True, constant=False)


class _NoStateError(Exception):
    def __init__(self, operator: str, reason: str) -> None:
        self.operator = operator
        self.reason = reason


class _Search:
    def __init__(self, subgraphs: Sequence[FileSubgraph]) -> None:
        self._subgraphs = subgraphs
        self._main = subgraphs[0]

    def found(self) -> Variables:
        once = {n: o for n, o in enumerate(self._main.operators) if o.op_type == ONCE}
        initial = {index for o in once.values() for _, index in o.entries}
        self._refuse_elsewhere(initial)
        starts: dict[tuple[str, str], Place] = {}
        is_used = False
        for operator in self._main.operators:
            is_used = is_used or operator.op_type in _USES
            if operator.op_type == ONCE:
                if is_used:
                    raise _NoStateError(ONCE, "CALL_ONCE follows a use of its variables")
                for _, index in operator.entries:
                    starts.update(self._assigned_once(index))
        handles = {
            o.outputs[0]: o.variable
            for o in self._main.operators
            if o.op_type == HANDLE and o.variable is not None and len(o.outputs) == 1
        }
        if handles.keys() & {*self._main.inputs, *self._main.outputs}:
            raise _NoStateError(HANDLE, "a handle as input or output of the model is unsupported")
        by_handle, first_handle = self._states(handles, starts)
        dropped = {n for n, o in enumerate(self._main.operators) if o.op_type == HANDLE}
        return Variables(by_handle, first_handle, frozenset({*dropped, *once}))

    def _refuse_elsewhere(self, initial: set[int]) -> None:
        for index, subgraph in enumerate(self._subgraphs):
            for operator in subgraph.operators:
                if index and index not in initial and operator.op_type in _OF_VARIABLES:
                    raise _NoStateError(operator.op_type, "variables in subgraphs are unsupported")

    def _assigned_once(self, index: int) -> dict[tuple[str, str], Place]:
        """Return the constants that an initial subgraph assigns, by variable."""
        subgraph = self._subgraphs[index]
        handles: dict[int, tuple[str, str]] = {}
        found: dict[tuple[str, str], Place] = {}
        for operator in subgraph.operators:
            if operator.op_type == HANDLE and operator.variable is not None:
                handles.update(dict.fromkeys(operator.outputs, operator.variable))
            elif operator.op_type == ASSIGN and len(operator.inputs) == 2:
                handle, value = operator.inputs
                if handle not in handles or value < 0 or not subgraph.tensors[value].constant:
                    raise _NoStateError(ONCE, "the initial value of a variable is not a constant")
                found[handles[handle]] = (index, value)
            else:
                raise _NoStateError(
                    ONCE, f"{operator.op_type} is unsupported in its subgraph, use ASSIGN_VARIABLE"
                )
        return found

    def _states(
        self, handles: Mapping[int, tuple[str, str]], starts: Mapping[tuple[str, str], Place]
    ) -> tuple[dict[int, Variable], dict[int, int]]:
        values: dict[tuple[str, str], list[int]] = {}
        for operator in self._main.operators:
            for handle, value in self._uses(operator, handles):
                values.setdefault(handles[handle], []).append(value)
        by_handle: dict[int, Variable] = {}
        first_handle: dict[int, int] = {}
        first_of: dict[tuple[str, str], int] = {}
        for handle, key in handles.items():
            first_handle[handle] = first_of.setdefault(key, handle)
            if key not in values:
                continue
            places = [(0, value) for value in values[key]]
            start = starts.get(key)
            self._refuse_unlike([*places, *([] if start is None else [start])])
            by_handle[handle] = Variable(places[0], start)
        return by_handle, first_handle

    def _uses(
        self, operator: FileOperator, handles: Mapping[int, tuple[str, str]]
    ) -> list[tuple[int, int]]:
        """Return the handle and the value of an operator that uses one."""
        is_read = operator.op_type == READ and len(operator.inputs) == len(operator.outputs) == 1
        is_assigned = operator.op_type == ASSIGN and len(operator.inputs) == 2
        if operator.op_type in _USES:
            value = operator.outputs[0] if is_read else operator.inputs[1] if is_assigned else -1
            if value >= 0 and operator.inputs[0] in handles:
                return [(operator.inputs[0], value)]
            raise _NoStateError(operator.op_type, "the variable has no VAR_HANDLE")
        if operator.op_type != HANDLE and handles.keys() & {*operator.inputs, *operator.outputs}:
            raise _NoStateError(operator.op_type, "a variable's handle as operand is unsupported")
        return []

    def _refuse_unlike(self, places: Sequence[Place]) -> None:
        tensors = [self._subgraphs[index].tensors[position] for index, position in places]
        if len({(tensor.type_code, tensor.shape) for tensor in tensors}) > 1:
            shapes = " and ".join(dict.fromkeys(str(tensor.shape) for tensor in tensors))
            raise _NoStateError(
                ASSIGN, f"values of one variable differ in type or shape: {shapes}"
            )

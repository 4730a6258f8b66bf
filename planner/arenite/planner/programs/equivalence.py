"""Prove that a rewritten program computes the same values as before, without running it."""

from collections.abc import Iterator

from arenite.planner.errors import DifferentValuesError
from arenite.planner.operators.moving import Narrow, Pack, Unpack, Widen
from arenite.planner.programs.program import Program, Step
from arenite.planner.tensors import DType, TensorKind


def check_same_values(before: Program, after: Program, *, rounded: bool = False) -> None:
    """Return if every output and state of both programs is the same expression.

    Each tensor stands for the operator that makes it and the expressions it reads; steps that
    run again make the same expression, and what is moved stays what it is. Operators are the
    same if they are one object: rewrites pass them on.

    Args:
        rounded: Whether a tensor kept with fewer bits counts as unchanged.

    Raises:
        DifferentValuesError: An output or a state is another expression.

    Cost: O(operands of the steps).
    """
    numbers: dict[tuple[object, ...], int] = {}
    one, other = _expressions(before, numbers), _expressions(after, numbers, rounded)
    if before.output_tensors != after.output_tensors:
        raise DifferentValuesError(after.name, "has different outputs after the rewrite")
    states = [each.name for each in before.tensors.values() if each.kind is TensorKind.STATE]
    for name in (*before.output_tensors, *states):
        if one[name] != other.get(name):
            raise DifferentValuesError(name, "is computed differently after the rewrite")


def _expressions(
    program: Program, numbers: dict[tuple[object, ...], int], rounded: bool = False
) -> dict[str, int]:
    """Return the number of each tensor's expression, at the end of the run."""

    def number(*expression: object) -> int:
        return numbers.setdefault(expression, len(numbers))

    found: dict[str, int] = {}
    parts: dict[str, list[tuple[int, int]]] = {}  # offset and expression of each part
    packed: dict[int, int] = {}  # booleans of each expression of bits

    def value(name: str) -> int:
        alias = program.tensors[name].alias
        if name in found:
            return found[name]
        if name in parts:
            return number("parts", *sorted(parts[name]))
        if alias is None:
            return found[name]
        return number("part", value(alias.tensor), alias.offset)

    given = {*program.input_tensors}
    for tensor in program.tensors.values():
        if tensor.name in given or tensor.kind in (TensorKind.CONSTANT, TensorKind.STATE):
            found[tensor.name] = number("given", tensor.name)
    for step in program.steps:
        reads = tuple(value(name) if name else -1 for name in step.inputs)
        moved = any(step.operator.bytes_moved(program.operands(step)))
        moved |= rounded and isinstance(step.operator, Narrow | Widen)
        same = reads[0] if moved else None
        if isinstance(step.operator, Unpack):
            same = packed.get(reads[0])
        for position, name in enumerate(step.outputs):
            if name:
                made = number(id(step.operator), reads, position) if same is None else same
                found[name] = made
                if isinstance(step.operator, Pack) and _is_boolean(program, step):
                    packed[made] = reads[0]
                for outer, offset in _around(program, name):
                    parts.setdefault(outer, []).append((offset, found[name]))
        for position in step.operator.updates:
            found[step.inputs[position]] = number(id(step.operator), reads, "updates", position)
    ends = (*program.output_tensors, *(name for name in found if name in program.tensors))
    return {name: value(name) for name in ends}


def _is_boolean(program: Program, step: Step) -> bool:
    return program.tensors[step.inputs[0]].dtype is DType.BOOL


def _around(program: Program, name: str) -> Iterator[tuple[str, int]]:
    """Yield the tensors that contain a tensor, from the inside out, and its first byte there."""
    offset = 0
    while (alias := program.tensors[name].alias) is not None:
        name, offset = alias.tensor, offset + alias.offset
        yield name, offset

"""Run a graph of small integer operators, every tensor where a plan puts it.

Kernels are as naive as can be: row-major, each element written as soon as it is known, so
what is overwritten too early is seen.
"""

from typing import Any

import numpy as np

from arenite.planner.operators.imported import Imported
from arenite.planner.placement.verification import verify
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import Boundary
from arenite.planner.rewrites.aliasing.overlap import permit_overlaps
from arenite.planner.tensors import DType, Tensor
from arenite.strategies import find

DTYPE = DType.INT64
_GARBAGE = 0x5A
_UNARY = {"Relu": lambda a: max(a, 0), "Neg": lambda a: -a}
_BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}

UNARY, BINARY = (*_UNARY, "Reverse", "Softmax"), tuple(_BINARY)


class Arena:
    """The memory of one run: the plan's arena, and a buffer for each storage of the caller."""

    def __init__(
        self, graph: Program, boundary: Boundary, alignment: int, *, overlapping: bool = False
    ) -> None:
        problem = liveness(graph, boundary=boundary, alignment=alignment)
        if overlapping:
            problem = permit_overlaps(graph, problem)
        plan = find("best" if overlapping else "greedy-by-size")(problem)
        verify(problem, plan)
        self._graph = graph
        self._bytes = np.full(plan.height, _GARBAGE, np.uint8)
        self._offsets = {
            record.name: offset
            for record, offset in zip(problem.records, plan.offsets, strict=True)
        }
        self._callers: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        tensor = self._graph.tensors[name]
        root, offset = self._graph.root(name)
        if root in self._offsets:
            memory, offset = self._bytes, offset + self._offsets[root]
        else:
            size = self._graph.tensors[root].size
            memory = self._callers.setdefault(root, np.full(size, _GARBAGE, np.uint8))
        return memory[offset : offset + tensor.size].view(np.int64).reshape(tensor.shape)


def run(
    graph: Program,
    inputs: dict[str, np.ndarray],
    boundary: Boundary = Boundary.INCLUDE,
    alignment: int = 1,
) -> dict[str, np.ndarray]:
    """Return the graph outputs, and the graph inputs where they are the caller's."""
    arena = Arena(graph, boundary, alignment)
    for name, value in inputs.items():
        arena[name][...] = value
    for step in graph.steps:
        _compute(step, arena)
    names = _boundary(graph, boundary)
    return {name: arena[name].copy() for name in names}


def _boundary(graph: Program, boundary: Boundary) -> tuple[str, ...]:
    if boundary is Boundary.INCLUDE:
        return graph.output_tensors
    return (*graph.output_tensors, *graph.input_tensors)


def _compute(step: Step, arena: Arena) -> None:
    operands = [arena[name] for name in step.inputs]
    results = [arena[name] for name in step.outputs]
    operator = step.operator
    assert isinstance(operator, Imported)
    op_type, axis = operator.op_type, operator.attributes.get("axis")
    assert isinstance(axis, int | None)
    if op_type == "Split" and axis is not None:
        begin = 0
        for result in results:
            end = begin + result.shape[axis]
            result[...] = operands[0].take(range(begin, end), axis)
            begin = end
    elif op_type == "Slice":
        result = results[0]
        starts = operator.attributes["starts"]
        assert isinstance(starts, tuple)
        begins = map(int, starts)
        part = tuple(slice(s, s + n) for s, n in zip(begins, result.shape, strict=True))
        result[...] = operands[0][part].copy()
    elif op_type == "Concat" and axis is not None:
        begin = 0
        for operand in operands:
            window = [slice(None)] * 2
            window[axis] = slice(begin, begin + operand.shape[axis])
            results[0][tuple(window)] = operand.copy()
            begin += operand.shape[axis]
    elif op_type == "Softmax":
        for source, result in zip(operands[0], results[0], strict=True):
            largest, total = source.max(), source.sum()
            for index in range(len(source)):
                result[index] = 3 * source[index] - largest + total
    else:
        _compute_elements(op_type, [o.ravel() for o in operands], results[0].reshape(-1))


def _compute_elements(op_type: str, operands: list[np.ndarray], result: np.ndarray) -> None:
    for index in range(len(result)):
        if op_type in _UNARY:
            result[index] = _UNARY[op_type](operands[0][index])
        elif op_type in _BINARY:
            result[index] = _BINARY[op_type](operands[0][index], operands[1][index])
        elif op_type == "Reverse":
            result[index] = operands[0][len(result) - 1 - index]
        else:
            assert op_type == "Reshape"
            result[index] = operands[0][index]


def matrix(name: str, rows: int, columns: int, **more: Any) -> Tensor:
    """Return a tensor that the interpreter can hold."""
    return Tensor(name, DTYPE, (rows, columns), **more)

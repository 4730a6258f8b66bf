"""Graphs so wide that a search of all orders would take forever."""

from arenite.planner.programs.program import Program
from arenite.planner.tensors import DType, Tensor, TensorKind
from support.steps import step


def wide_graph(num_branches: int) -> Program:
    """Branches of four operators that swell and shrink, each in its own way, then one sum."""
    tensors = [Tensor("x", DType.UINT8, (4,), TensorKind.INPUT)]
    steps = []
    for branch in range(num_branches):
        before = "x"
        for depth in range(4):
            name = f"b{branch}.{depth}"
            size = 1 + (branch * 37 + depth * 101) % 89
            tensors.append(Tensor(name, DType.UINT8, (size,)))
            steps.append(step(f"op {name}", "Conv", (before,), (name,)))
            before = name
    ends = tuple(f"b{branch}.3" for branch in range(num_branches))
    tensors.append(Tensor("y", DType.UINT8, (1,), TensorKind.OUTPUT))
    steps.append(step("sum", "Concat", ends, ("y",)))
    return Program.of("wide", tensors, steps, ["x"], ["y"])

"""Small graphs and their steps, named by their operator as an importer would."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from arenite.planner.importers.onnx.operators import onnx_operator
from arenite.planner.importers.tflite.operators import SubgraphEntry, tflite_operator
from arenite.planner.operators.imported import AttributeValue, Imported
from arenite.planner.programs.program import Program, Step
from arenite.planner.tensors import DType, Tensor, TensorKind


def operator(
    op_type: str, attributes: Mapping[str, AttributeValue] | None = None, scratch: int = 0
) -> Imported:
    """Return the operator of this name: TFLite's are written in capitals, ONNX's are not."""
    if attributes and "subgraph" in attributes:
        return SubgraphEntry(op_type, attributes)
    if not op_type.isupper():
        return onnx_operator(op_type, attributes, reserve=scratch)
    found = tflite_operator(op_type, attributes)
    return type(found)(op_type, found.attributes, scratch)


def step(
    name: str,
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    attributes: Mapping[str, AttributeValue] | None = None,
    scratch: int = 0,
) -> Step:
    """Return a step of the operator of this name."""
    return Step(name, operator(op_type, attributes, scratch), tuple(inputs), tuple(outputs))


def tensor(
    name: str,
    shape: tuple[int, ...] = (8,),
    kind: TensorKind = TensorKind.ACTIVATION,
    dtype: DType = DType.FLOAT32,
) -> Tensor:
    """Return a tensor."""
    return Tensor(name, dtype, shape, kind)


def graph_of(
    tensors: Iterable[Tensor],
    operators: Iterable[tuple[Any, ...]],
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("y",),
) -> Program:
    """Return the graph of operators `(type, inputs, outputs)`, or with attributes last."""
    made = [
        step(f"{op_type}_{index}", op_type, reads, writes, *attributes)
        for index, (op_type, reads, writes, *attributes) in enumerate(operators)
    ]
    return Program.of("test", tensors, made, inputs, outputs)


def chain(
    op_type: str,
    source_shape: tuple[int, ...] = (8,),
    result_shape: tuple[int, ...] = (8,),
    dtype: DType = DType.FLOAT32,
) -> Program:
    """Return a graph in which the operator makes `b` of `a`, an operator between two Convs."""
    return graph_of(
        [tensor("x", source_shape, TensorKind.INPUT), tensor("a", source_shape),
         tensor("b", result_shape, dtype=dtype), tensor("y", result_shape, TensorKind.OUTPUT)],
        [("Conv", ("x",), ("a",)), (op_type, ("a",), ("b",)), ("Conv", ("b",), ("y",))],
    )  # fmt: skip


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

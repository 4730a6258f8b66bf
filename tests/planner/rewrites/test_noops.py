"""Which operators cost no memory, and which copies must stay."""

from collections.abc import Mapping
from itertools import pairwise

import pytest

from arenite.planner.operators.imported import AttributeValue
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.rewrites.noops import drop_noops
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from support.tiny_graphs import step

MIDDLE = TensorKind.ACTIVATION


def chain(
    op_type: str,
    *,
    attributes: Mapping[str, AttributeValue] | None = None,
    extra: tuple[str, ...] = (),
    result: Tensor | None = None,
) -> Program:
    """Return x -> Neg -> a -> `op_type` -> b -> Neg -> y."""
    tensors = [
        Tensor("x", DType.FLOAT32, (2, 3), TensorKind.INPUT),
        Tensor("a", DType.FLOAT32, (2, 3)),
        result or Tensor("b", DType.FLOAT32, (2, 3)),
        Tensor("y", DType.FLOAT32, (2, 3), TensorKind.OUTPUT),
        *(Tensor(name, DType.FLOAT32, (2, 3), TensorKind.CONSTANT) for name in set(extra) - {""}),
    ]
    operators = [
        step("first", "Neg", ("x",), ("a",)),
        step("middle", op_type, ("a", *extra), ("b",), attributes or {}),
        step("last", "Neg", ("b",), ("y",)),
    ]
    return Program.of("chain", tensors, operators, ["x"], ["y"])


@pytest.mark.parametrize(
    "graph",
    [
        chain("Identity"),
        chain("Dropout"),
        chain("Cast", attributes={"to": 1}),
        chain("CAST"),
        chain("Concat", attributes={"axis": 0}),
        chain("Sum"),
        chain("Max"),
        chain("Reshape", extra=("shape",)),
        chain("RESHAPE", extra=("shape",)),
        chain("Expand", extra=("shape",)),
        chain("Transpose", attributes={"perm": (0, 1)}),
        chain("Pad", attributes={"pads": (0, 0, 0, 0)}),
        chain("Slice", extra=("starts", "ends")),
    ],
    ids=lambda graph: graph.steps[1].operator.label,
)
def test_an_operator_that_changes_nothing_costs_nothing(graph: Program) -> None:
    rewritten = drop_noops(graph)
    assert rewritten.tensors["b"].alias == Alias("a")
    assert rewritten.steps == graph.steps
    assert liveness(rewritten).naive == liveness(graph).naive - 32
    assert drop_noops(rewritten) == rewritten


@pytest.mark.parametrize(
    "graph",
    [
        chain("Relu"),
        chain("Cast", result=Tensor("b", DType.INT32, (2, 3))),
        chain("Reshape", result=Tensor("b", DType.FLOAT32, (3, 2))),
        chain("Concat", extra=("c",)),
        chain("Sum", extra=("c",)),
        chain("Transpose", attributes={"perm": (1, 0)}),
        chain("Transpose"),
        chain("Pad", attributes={"pads": (1, 0, -1, 0)}),
        chain("Pad", extra=("unknown",)),
        chain("Slice", extra=("starts", "ends", "axes", "steps")),
        chain("TRANSPOSE"),
    ],
    ids=lambda graph: graph.steps[1].operator.label,
)
def test_an_operator_that_changes_something_keeps_its_storage(graph: Program) -> None:
    assert drop_noops(graph) == graph


def copy(source: TensorKind, target: TensorKind) -> Program:
    tensors = [
        Tensor("x", DType.FLOAT32, (4,), TensorKind.INPUT),
        Tensor("source", DType.FLOAT32, (4,), source),
        Tensor("target", DType.FLOAT32, (4,), target),
        Tensor("y", DType.FLOAT32, (4,), TensorKind.OUTPUT),
    ]
    operators = [
        step("copy", "Identity", ("source",), ("target",)),
        step("use", "Neg", ("target",), ("y",)),
    ]
    inputs = ["x", "source"] if source is TensorKind.INPUT else ["x"]
    outputs = ["y", "target"] if target is TensorKind.OUTPUT else ["y"]
    return Program.of("copy", tensors, operators, inputs, outputs)


@pytest.mark.parametrize(
    ("source", "target", "shares"),
    [
        (TensorKind.INPUT, MIDDLE, True),
        (TensorKind.INPUT, TensorKind.OUTPUT, True),
        (TensorKind.CONSTANT, MIDDLE, True),
        (TensorKind.CONSTANT, TensorKind.OUTPUT, False),
        (TensorKind.STATE, MIDDLE, False),
        (TensorKind.INPUT, TensorKind.STATE, False),
    ],
)
def test_a_copy_that_the_run_needs_stays_one(
    source: TensorKind, target: TensorKind, shares: bool
) -> None:
    tensor = drop_noops(copy(source, target)).tensors["target"]
    assert (tensor.alias is not None) is shares


def test_an_input_copied_to_an_output_is_live_throughout() -> None:
    problem = liveness(drop_noops(copy(TensorKind.INPUT, TensorKind.OUTPUT)))
    record = next(record for record in problem.records if "target" in record.tensors)
    assert (record.start, record.end, record.tensors) == (0, 2, ("source", "target"))


def test_a_chain_of_copies_lies_in_the_first_storage() -> None:
    names = ["x", "a", "b", "c"]
    tensors = [Tensor(name, DType.INT8, (4,)) for name in names[1:]]
    operators = [step(to, "Identity", (source,), (to,)) for source, to in pairwise(names)]
    entry = Tensor("x", DType.INT8, (4,), TensorKind.INPUT)
    graph = Program.of("copies", [entry, *tensors], operators, ["x"], ["c"])
    assert {drop_noops(graph).root(name) for name in names} == {("x", 0)}


@pytest.mark.parametrize(("overwritten", "kept"), [("x", "copied"), ("copied", "x")])
def test_a_copy_stays_one_if_its_source_or_itself_is_overwritten(
    overwritten: str, kept: str
) -> None:
    tensors = [
        Tensor("x", DType.FLOAT32, (4,), TensorKind.INPUT),
        Tensor("copied", DType.FLOAT32, (4,)),
        Tensor("over", DType.FLOAT32, (4,), alias=Alias(overwritten)),
        Tensor("y", DType.FLOAT32, (4,), TensorKind.OUTPUT),
    ]
    operators = [
        step("copy", "Identity", ("x",), ("copied",)),
        step("overwrite", "Relu", (overwritten,), ("over",)),
        step("use", "Add", (kept, "over"), ("y",)),
    ]
    graph = Program.of("in place", tensors, operators, ["x"], ["y"])
    assert drop_noops(graph) == graph


def test_a_constant_reaches_a_graph_output_by_a_real_copy_even_over_two_steps() -> None:
    tensors = [
        Tensor("w", DType.FLOAT32, (4,), TensorKind.CONSTANT),
        Tensor("a", DType.FLOAT32, (4,)),
        Tensor("y", DType.FLOAT32, (4,), TensorKind.OUTPUT),
    ]
    operators = [
        step("first", "Identity", ("w",), ("a",)),
        step("second", "Identity", ("a",), ("y",)),
    ]
    rewritten = drop_noops(Program.of("two copies", tensors, operators, [], ["y"]))
    assert rewritten.root("a") == ("w", 0)
    assert rewritten.root("y") == ("y", 0)

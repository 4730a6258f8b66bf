"""Which clamps are fused, what the fused operator states, and which stay."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from arenite.planner.operators.imported import AttributeValue
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.records import liveness
from arenite.planner.rewrites.activations import fuse_activations
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from support.tiny_graphs import step


def tensor(
    name: str, kind: TensorKind = TensorKind.ACTIVATION, alias: str | None = None
) -> Tensor:
    return Tensor(name, DType.FLOAT32, (4,), kind, Alias(alias) if alias else None)


def operator(
    op_type: str, inputs: str, output: str, attributes: Mapping[str, AttributeValue] | None = None
) -> Step:
    return step(output, op_type, tuple(inputs.split()), (output,), attributes or {})


CONV = operator("Conv", "x w", "c", {"group": 1})
RELU = operator("Relu", "c", "r")
NEG = operator("Neg", "r", "y")


def graph(*operators: Step, outputs: tuple[str, ...] = ("y",), views: str = "") -> Program:
    """Return the graph of these operators; `views` names the tensor that lies in its maker's."""
    names = dict.fromkeys(name for op in operators for name in (*op.reads, *op.writes))
    kinds = {"x": TensorKind.INPUT, "w": TensorKind.CONSTANT, "low": TensorKind.CONSTANT}
    kinds |= {"high": TensorKind.CONSTANT} | dict.fromkeys(outputs, TensorKind.OUTPUT)
    makers = {op.outputs[0]: op.inputs[0] for op in operators}
    tensors = [
        tensor(
            name, kinds.get(name, TensorKind.ACTIVATION), makers[name] if name == views else None
        )
        for name in names
    ]
    return Program.of("test", tensors, operators, ["x"], outputs)


@pytest.mark.parametrize(
    "op_type", ["Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul"]
)
def test_a_relu_goes_into_the_operator_that_alone_feeds_it(op_type: str) -> None:
    before = graph(operator(op_type, "x w", "c", {"group": 1}), RELU, NEG)
    after = fuse_activations(before)
    assert after.steps == (
        step("c", op_type, ("x", "w"), ("r",), {"group": 1, "activation": "Relu"}),
        NEG,
    )
    assert list(after.tensors) == ["x", "w", "r", "y"]


def test_constant_bounds_are_named_by_the_fused_operator_and_stay_in_the_graph() -> None:
    clip = operator("Clip", "c low high", "r")
    after = fuse_activations(graph(CONV, clip, NEG))
    assert after.steps[0].operator.attributes["activation"] == "Clip"
    assert after.steps[0].operator.attributes["activation_inputs"] == ("low", "high")
    assert {"low", "high"} <= after.tensors.keys()


def test_a_bound_left_out_keeps_its_place() -> None:
    clip = step("r", "Clip", ("c", "", "high"), ("r",))
    after = fuse_activations(graph(CONV, clip, NEG))
    assert after.steps[0].operator.attributes["activation_inputs"] == ("", "high")


def test_bounds_that_are_attributes_are_carried_over() -> None:
    clip = operator("Clip", "c", "r", {"min": 0.0, "max": 6.0})
    after = fuse_activations(graph(CONV, clip, NEG))
    assert after.steps[0].operator.attributes == {
        "group": 1,
        "activation": "Clip",
        "activation_min": 0.0,
        "activation_max": 6.0,
    }


def test_the_fused_operator_may_write_a_graph_output() -> None:
    after = fuse_activations(graph(CONV, RELU, outputs=("r",)))
    assert after.steps[0].outputs == ("r",)
    assert after.output_tensors == ("r",)


def test_of_two_clamps_in_a_row_the_first_is_fused() -> None:
    after = fuse_activations(graph(CONV, RELU, operator("Relu", "r", "y")))
    assert [op.operator.label for op in after.steps] == ["Conv", "Relu"]


def test_every_layer_of_a_chain_is_fused() -> None:
    layers = [CONV, RELU, operator("Conv", "r w", "d"), operator("Relu", "d", "y")]
    after = fuse_activations(graph(*layers))
    assert [op.outputs for op in after.steps] == [("r",), ("y",)]


def test_the_load_never_rises() -> None:
    late = [CONV, operator("Neg", "x", "n"), operator("Add", "x n", "a"), RELU]
    before = graph(*late, operator("Mul", "r a", "y"))
    after = fuse_activations(before)
    assert len(after.steps) == len(before.steps) - 1
    assert liveness(after).lower_bound <= liveness(before).lower_bound


def kept(kind: TensorKind) -> Program:
    """Return a graph whose clamp reads state, or else a graph output of this kind."""
    before = graph(CONV, RELU, NEG, outputs=("y", "c"))
    tensors = {**before.tensors, "c": replace(before.tensors["c"], kind=kind)}
    outputs = before.outputs[:1] if kind is TensorKind.STATE else before.outputs
    return replace(before, tensors=tensors, outputs=outputs)


STAYS = {
    "another operator reads what the clamp reads": graph(CONV, RELU, operator("Add", "r c", "y")),
    "the caller reads what the clamp reads": kept(TensorKind.ACTIVATION),
    "the next run reads what the clamp reads": kept(TensorKind.STATE),
    "a bound is computed": graph(
        CONV, operator("Neg", "x", "n"), operator("Clip", "c n", "r"), NEG
    ),
    "the clamp is bounded by its own input": graph(CONV, operator("Clip", "c c", "r"), NEG),
    "the result lies in what the clamp reads": graph(CONV, RELU, NEG, views="r"),
    "what the clamp reads lies in another tensor": graph(CONV, RELU, NEG, views="c"),
    "the producer has an activation": graph(
        operator("Conv", "x w", "c", {"activation": "Relu"}), RELU, NEG
    ),
    "the producer cannot clamp": graph(operator("Softmax", "x", "c"), RELU, NEG),
    "the clamp reads a graph input": graph(operator("Relu", "x", "r"), NEG),
    "the activation is no clamp": graph(CONV, operator("Tanh", "c", "r"), NEG),
    "the clamp is of another domain": graph(CONV, operator("com.other.Relu", "c", "r"), NEG),
}


@pytest.mark.parametrize("reason", STAYS)
def test_the_clamp_stays_where(reason: str) -> None:
    assert fuse_activations(STAYS[reason]) == STAYS[reason]

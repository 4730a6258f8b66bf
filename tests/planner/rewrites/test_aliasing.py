import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.dtypes import DType
from arenite.planner.graph import Alias, Graph, Operator, Tensor, TensorKind
from arenite.planner.liveness import Boundary, liveness
from arenite.planner.rewrites.aliasing import AliasKind, alias

BOTH = tuple(AliasKind)


def tensor(name, shape=(8,), kind=TensorKind.ACTIVATION, dtype=DType.FLOAT32):
    return Tensor(name, dtype, shape, kind)


def graph_of(tensors, operators, inputs=("x",), outputs=("y",)):
    return Graph.of(
        "test",
        tensors,
        [Operator(f"{op}_{i}", op, ins, outs) for i, (op, ins, outs) in enumerate(operators)],
        inputs,
        outputs,
    )


def chain(op_type, source_shape=(8,), result_shape=(8,), **result):
    return graph_of(
        [tensor("x", source_shape, TensorKind.INPUT), tensor("a", source_shape),
         tensor("b", result_shape, **result), tensor("y", result_shape, TensorKind.OUTPUT)],
        [("Conv", ("x",), ("a",)), (op_type, ("a",), ("b",)), ("Conv", ("b",), ("y",))],
    )  # fmt: skip


def test_a_view_lies_in_the_storage_of_its_source():
    aliased = alias(chain("Reshape", (8,), (2, 4)), [AliasKind.VIEWS])
    assert aliased.tensors["b"].alias == Alias("a")
    assert {record.name for record in liveness(aliased).records} == {"x", "a", "y"}


def test_a_result_overwrites_the_operand_that_dies():
    assert alias(chain("Relu"), [AliasKind.IN_PLACE]).tensors["b"].alias == Alias("a")


@pytest.mark.parametrize("op_type", ["Reshape", "Relu"])
def test_each_kind_has_an_off_switch(op_type):
    graph = chain(op_type)
    other = AliasKind.IN_PLACE if op_type == "Reshape" else AliasKind.VIEWS
    assert alias(graph, [other]) == graph
    assert alias(graph, []) == graph


def test_an_operand_that_is_read_later_is_not_overwritten():
    graph = graph_of(
        [tensor("x", kind=TensorKind.INPUT), tensor("a"), tensor("b"),
         tensor("y", kind=TensorKind.OUTPUT)],
        [("Conv", ("x",), ("a",)), ("Relu", ("a",), ("b",)), ("Add", ("a", "b"), ("y",))],
    )  # fmt: skip
    aliased = alias(graph, BOTH)
    assert aliased.tensors["b"].alias is None
    assert aliased.tensors["y"].alias == Alias("a")


def test_an_operand_whose_view_is_read_later_is_not_overwritten():
    graph = graph_of(
        [tensor("x", kind=TensorKind.INPUT), tensor("a"), tensor("v", (2, 4)), tensor("b"),
         tensor("y", (2, 4), TensorKind.OUTPUT)],
        [("Conv", ("x",), ("a",)), ("Reshape", ("a",), ("v",)), ("Relu", ("a",), ("b",)),
         ("Conv", ("v", "b"), ("y",))],
    )  # fmt: skip
    assert alias(graph, BOTH).tensors["b"].alias is None


def test_a_graph_output_is_not_overwritten():
    graph = graph_of(
        [tensor("x", kind=TensorKind.INPUT), tensor("a", kind=TensorKind.OUTPUT), tensor("y")],
        [("Conv", ("x",), ("a",)), ("Relu", ("a",), ("y",))],
        outputs=("a", "y"),
    )
    assert alias(graph, BOTH).tensors["y"].alias is None


def test_what_the_caller_owns_is_neither_overwritten_nor_laid_over_the_arena():
    graph = graph_of(
        [tensor("x", kind=TensorKind.INPUT), tensor("a"), tensor("b"),
         tensor("y", kind=TensorKind.OUTPUT)],
        [("Relu", ("x",), ("a",)), ("Conv", ("a",), ("b",)), ("Relu", ("b",), ("y",))],
    )  # fmt: skip
    assert alias(graph, BOTH).tensors["a"].alias == Alias("x")
    assert alias(graph, BOTH).tensors["y"].alias == Alias("b")
    assert alias(graph, BOTH, Boundary.EXCLUDE) == graph


@pytest.mark.parametrize("kind", [TensorKind.CONSTANT, TensorKind.STATE])
@pytest.mark.parametrize("op_type", ["Relu", "Reshape"])
def test_constants_and_states_are_neither_viewed_nor_overwritten(kind, op_type):
    graph = graph_of(
        [tensor("c", kind=kind), tensor("y", kind=TensorKind.OUTPUT)],
        [(op_type, ("c",), ("y",))],
        inputs=(),
    )
    assert alias(graph, BOTH).tensors["y"].alias is None


def test_a_result_of_another_type_is_not_written_in_place():
    graph = chain("Relu", dtype=DType.FLOAT16)
    assert alias(graph, BOTH).tensors["b"].alias is None


def test_a_broadcast_operand_is_not_overwritten_but_the_full_one_is():
    graph = graph_of(
        [tensor("x", (8,), TensorKind.INPUT), tensor("row", (8,)), tensor("full", (4, 8)),
         tensor("s", (4, 8)), tensor("y", (4, 8), TensorKind.OUTPUT)],
        [("Conv", ("x",), ("row",)), ("Conv", ("x",), ("full",)),
         ("Add", ("row", "full"), ("s",)), ("Conv", ("s",), ("y",))],
    )  # fmt: skip
    assert alias(graph, BOTH).tensors["s"].alias == Alias("full")


def test_an_operand_is_not_overwritten_while_another_part_of_its_storage_is_an_operand():
    part = Tensor("q", DType.FLOAT32, (8,), alias=Alias("p", 4))
    graph = graph_of(
        [tensor("x", kind=TensorKind.INPUT), tensor("s", (9,)),
         Tensor("p", DType.FLOAT32, (9,), alias=Alias("s")), part,
         tensor("r"), tensor("y", kind=TensorKind.OUTPUT)],
        [("Conv", ("x",), ("s",)), ("Pad", ("s",), ("p",)), ("Slice", ("p",), ("q",)),
         ("Add", ("q", "p"), ("r",)), ("Conv", ("r",), ("y",))],
    )  # fmt: skip
    assert alias(graph, BOTH).tensors["r"].alias is None


def test_an_operator_that_is_not_element_wise_never_runs_in_place():
    assert alias(chain("Conv"), BOTH).tensors["b"].alias is None


_UNARY = {"Relu": lambda a: np.maximum(a, 0), "Neg": lambda a: -a}
_BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
_SHAPES = ((2, 6), (3, 4), (12,))


@st.composite
def programs(draw):
    """A graph of element-wise operators, views and one that is neither, all runnable."""
    tensors = [tensor("x", (3, 4), TensorKind.INPUT, DType.INT64)]
    operators = []
    for index in range(draw(st.integers(1, 9))):
        a = draw(st.sampled_from(tensors))
        op_type = draw(st.sampled_from([*_UNARY, *_BINARY, "Reshape", "Reverse"]))
        shape, inputs = a.shape, (a.name,)
        if op_type in _BINARY:
            same = [t for t in tensors if t.shape == a.shape]
            inputs = (a.name, draw(st.sampled_from(same)).name)
        elif op_type == "Reshape":
            shape = draw(st.sampled_from(_SHAPES))
        tensors.append(tensor(f"t{index}", shape, dtype=DType.INT64))
        operators.append((op_type, inputs, (f"t{index}",)))
    names = [t.name for t in tensors]
    outputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return graph_of(tensors, operators, outputs=tuple(outputs))


def execute(graph, x):
    """Run over real storages: tensors that share one share its bytes."""
    storages = {}

    def view(name):
        root, _ = graph.root(name)
        storage = storages.setdefault(root, np.zeros(12, np.int64))
        return storage.reshape(graph.tensors[name].shape)

    view("x")[...] = x
    for operator in graph.operators:
        operands = [view(name) for name in operator.inputs]
        result = view(operator.outputs[0])
        if operator.op_type in _UNARY:
            result[...] = _UNARY[operator.op_type](operands[0])
        elif operator.op_type in _BINARY:
            result[...] = _BINARY[operator.op_type](*operands)
        elif operator.op_type == "Reshape":
            result[...] = operands[0].reshape(result.shape).copy()
        else:
            result.ravel()[...] = operands[0].ravel()[::-1].copy()
    return [view(name).copy() for name in graph.outputs]


@given(programs())
def test_a_run_with_shared_storage_gives_the_same_bits(graph):
    x = np.arange(-5, 7).reshape(3, 4)
    aliased = alias(graph, BOTH)
    for expected, actual in zip(execute(graph, x), execute(aliased, x), strict=True):
        np.testing.assert_array_equal(expected, actual)


@given(programs())
def test_shared_storage_never_needs_more(graph):
    before, after = liveness(graph), liveness(alias(graph, BOTH))
    assert after.naive <= before.naive

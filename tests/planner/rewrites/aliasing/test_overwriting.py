import pytest

from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind, Boundary
from arenite.planner.rewrites.aliasing.rewrite import explain, share
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from support.tiny_graphs import chain, graph_of, tensor

ALL = SAFE_KINDS
X, Y = TensorKind.INPUT, TensorKind.OUTPUT


def reasons(graph: Program) -> str:
    return "; ".join(refusal.reason for refusal in explain(graph, ALL).refusals)


def test_a_result_overwrites_the_operand_that_dies():
    assert share(chain("Relu"), [AliasKind.IN_PLACE]).tensors["b"].alias == Alias("a")


@pytest.mark.parametrize("op_type", ["Softmax", "LayerNormalization", "L2_NORMALIZATION"])
def test_softmax_and_normalisation_overwrite_the_operand_that_dies(op_type):
    aliased = share(chain(op_type), [AliasKind.NORMALISATION])
    assert aliased.tensors["b"].alias == Alias("a")


@pytest.mark.parametrize(
    ("op_type", "kind"), [("Relu", AliasKind.IN_PLACE), ("Softmax", AliasKind.NORMALISATION)]
)
def test_each_kind_has_an_off_switch(op_type, kind):
    graph = chain(op_type)
    assert share(graph, [other for other in AliasKind if other is not kind]) == graph


def test_a_normaliser_overwrites_what_it_normalises_and_not_its_scale():
    graph = graph_of(
        [tensor("x", kind=X), tensor("a"), tensor("scale"), tensor("b"), tensor("y", kind=Y)],
        [("Conv", ("x",), ("a",)), ("Conv", ("x",), ("scale",)),
         ("LayerNormalization", ("a", "scale"), ("b",)), ("Add", ("a", "b"), ("y",))],
    )  # fmt: skip
    assert share(graph, ALL).tensors["b"].alias is None


def test_an_operand_that_is_read_later_is_not_overwritten():
    graph = graph_of(
        [tensor("x", kind=X), tensor("a"), tensor("b"), tensor("y", kind=Y)],
        [("Conv", ("x",), ("a",)), ("Relu", ("a",), ("b",)), ("Add", ("a", "b"), ("y",))],
    )
    aliased = share(graph, ALL)
    assert aliased.tensors["b"].alias is None
    assert aliased.tensors["y"].alias == Alias("a")
    assert reasons(graph) == "step 2 still reads 'a'"


def test_an_operand_whose_view_is_read_later_is_not_overwritten():
    graph = graph_of(
        [tensor("x", kind=X), tensor("a"), tensor("v", (2, 4)), tensor("b"),
         tensor("y", (2, 4), Y)],
        [("Conv", ("x",), ("a",)), ("Reshape", ("a",), ("v",)), ("Relu", ("a",), ("b",)),
         ("Conv", ("v", "b"), ("y",))],
    )  # fmt: skip
    assert share(graph, ALL).tensors["b"].alias is None


def test_a_graph_output_is_not_overwritten():
    graph = graph_of(
        [tensor("x", kind=X), tensor("a", kind=Y), tensor("y")],
        [("Conv", ("x",), ("a",)), ("Relu", ("a",), ("y",))],
        outputs=("a", "y"),
    )
    assert share(graph, ALL).tensors["y"].alias is None
    assert reasons(graph) == "the caller or the next run needs 'a'"


def test_graph_inputs_are_overwritten_only_where_the_caller_allows_it():
    graph = graph_of(
        [tensor("x", kind=X), tensor("v", (2, 4)), tensor("y", (2, 4), Y)],
        [("Reshape", ("x",), ("v",)), ("Relu", ("v",), ("y",))],
    )
    spared = [kind for kind in AliasKind if kind is not AliasKind.REUSE_INPUTS]
    assert share(graph, spared).tensors["y"].alias is None
    result = explain(graph, ALL)
    assert result.program.tensors["y"].alias == Alias("v")
    assert result.num_shared == {AliasKind.VIEWS: 1, AliasKind.REUSE_INPUTS: 1}


def test_what_the_caller_owns_is_neither_overwritten_nor_laid_over_the_arena():
    graph = graph_of(
        [tensor("x", kind=X), tensor("a"), tensor("b"), tensor("y", kind=Y)],
        [("Relu", ("x",), ("a",)), ("Conv", ("a",), ("b",)), ("Relu", ("b",), ("y",))],
    )
    assert share(graph, ALL).tensors["a"].alias == Alias("x")
    assert share(graph, ALL).tensors["y"].alias == Alias("b")
    assert share(graph, ALL, Boundary.EXCLUDE) == graph


@pytest.mark.parametrize("kind", [TensorKind.CONSTANT, TensorKind.STATE])
@pytest.mark.parametrize("op_type", ["Relu", "Softmax"])
def test_constants_and_states_are_not_overwritten(kind, op_type):
    graph = graph_of(
        [tensor("c", kind=kind), tensor("y", kind=Y)], [(op_type, ("c",), ("y",))], inputs=()
    )
    assert share(graph, ALL).tensors["y"].alias is None


def test_a_result_of_another_type_is_not_written_in_place():
    assert share(chain("Relu", dtype=DType.FLOAT16), ALL).tensors["b"].alias is None


def test_a_broadcast_operand_is_not_overwritten_but_the_full_one_is():
    graph = graph_of(
        [tensor("x", kind=X), tensor("row"), tensor("full", (4, 8)), tensor("s", (4, 8)),
         tensor("y", (4, 8), Y)],
        [("Conv", ("x",), ("row",)), ("Conv", ("x",), ("full",)),
         ("Add", ("row", "full"), ("s",)), ("Conv", ("s",), ("y",))],
    )  # fmt: skip
    assert share(graph, ALL).tensors["s"].alias == Alias("full")


def test_an_operand_is_not_overwritten_while_another_part_of_its_storage_is_an_operand():
    graph = graph_of(
        [tensor("x", kind=X), tensor("s", (9,)),
         Tensor("p", DType.FLOAT32, (9,), alias=Alias("s")),
         Tensor("q", DType.FLOAT32, (8,), alias=Alias("p", 4)),
         tensor("r"), tensor("y", kind=Y)],
        [("Conv", ("x",), ("s",)), ("Pad", ("s",), ("p",)), ("Crop", ("p",), ("q",)),
         ("Add", ("q", "p"), ("r",)), ("Conv", ("r",), ("y",))],
    )  # fmt: skip
    assert share(graph, ALL).tensors["r"].alias is None
    assert reasons(graph) == "'p' would be overwritten before it is read"


def test_a_convolution_that_adds_a_tensor_overwrites_that_and_not_its_image():
    graph = graph_of(
        [tensor("x", kind=X), tensor("a"), tensor("s"), tensor("w", kind=TensorKind.CONSTANT),
         tensor("b"), tensor("y", kind=Y)],
        [("Conv", ("x",), ("a",)), ("Conv", ("x",), ("s",)),
         ("com.microsoft.FusedConv", ("a", "w", "", "s"), ("b",)), ("Conv", ("b",), ("y",))],
    )  # fmt: skip
    assert share(graph, ALL).tensors["b"].alias == Alias("s")


@pytest.mark.parametrize("op_type", ["Conv", "LRN", "com.microsoft.FusedConv"])
def test_an_operator_that_reads_the_neighbours_of_what_it_writes_never_runs_in_place(op_type):
    assert share(chain(op_type), ALL).tensors["b"].alias is None

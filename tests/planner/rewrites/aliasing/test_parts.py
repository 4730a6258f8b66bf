import pytest

from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import SAFE_KINDS, AliasKind, Boundary
from arenite.planner.rewrites.aliasing.rewrite import Aliasing, explain, share
from arenite.planner.tensors import Alias, DType, TensorKind
from support.tiny_graphs import graph_of, tensor

ALL = SAFE_KINDS
X, Y = TensorKind.INPUT, TensorKind.OUTPUT


def split(shape, *parts, axis=1, kinds=ALL, op_type="Split", dtype=DType.FLOAT32) -> Aliasing:
    """Split `a` into `p0` and so on, which are read one after the other."""
    names = [f"p{number}" for number in range(len(parts))]
    reads = ("axis", "a") if op_type == "SPLIT" else ("a",)
    graph = graph_of(
        [tensor("x", kind=X), tensor("a", shape, dtype=dtype), tensor("y", (1,), Y),
         tensor("axis", (), TensorKind.CONSTANT),
         *(tensor(name, part, dtype=dtype) for name, part in zip(names, parts, strict=True))],
        [("Conv", ("x",), ("a",)), (op_type, reads, tuple(names), {"axis": axis}),
         ("Conv", tuple(names), ("y",))],
    )  # fmt: skip
    return explain(graph, kinds, alignment=1)


def test_the_parts_of_a_split_lie_in_what_is_split():
    result = split((1, 6, 2), (1, 2, 2), (1, 4, 2))
    assert result.program.tensors["p0"].alias == Alias("a", 0)
    assert result.program.tensors["p1"].alias == Alias("a", 16)
    assert result.num_shared == {AliasKind.SLICES: 2}
    assert liveness(result.program, alignment=1).lower_bound == 32 + 48


def test_slices_have_an_off_switch():
    others = [kind for kind in AliasKind if kind is not AliasKind.SLICES]
    result = split((6,), (2,), (4,), kinds=others)
    assert {tensor.alias for tensor in result.program.tensors.values()} == {None}


def test_tflite_states_the_axis_before_what_is_split():
    assert split((1, 4), (1, 2), (1, 2), op_type="SPLIT").num_shared == {AliasKind.SLICES: 2}


@pytest.mark.parametrize(
    ("shape", "parts", "dtype", "reason"),
    [
        ((2, 6), [(2, 2), (2, 4)], DType.FLOAT32, "axis 1 is not the outermost"),
        ((1, 6), [(1, 2), (1, 2)], DType.FLOAT32, "the parts do not make up the whole"),
        ((1, 6), [(1, 1), (1, 5)], DType.INT4, "it does not start on a whole byte"),
    ],
)
def test_parts_that_are_no_run_of_whole_bytes_stay_copies(shape, parts, dtype, reason):
    result = split(shape, *parts, dtype=dtype)
    assert reason in next(each.reason for each in result.refusals if each.tensor == "p1")
    assert result.program.tensors["p1"].alias is None


def sliced(attributes, shape=(4, 6), result=(2, 6)) -> Aliasing:
    graph = graph_of(
        [tensor("x", (1,), X), tensor("a", shape), tensor("b", result), tensor("y", (1,), Y)],
        [("Conv", ("x",), ("a",)), ("Slice", ("a",), ("b",), attributes),
         ("Conv", ("b",), ("y",))],
    )  # fmt: skip
    return explain(graph, ALL, alignment=1)


@pytest.mark.parametrize(
    ("attributes", "shape", "result", "offset"),
    [
        ({"starts": (1,)}, (4, 6), (2, 6), 24),
        ({"starts": (-2,), "axes": (0,), "steps": (1,)}, (4, 6), (2, 6), 48),
        ({"starts": (3, 2), "axes": (0, -1)}, (4, 6), (1, 3), 4 * (3 * 6 + 2)),
        ({"starts": (-99,)}, (4, 6), (3, 6), 0),
    ],
)
def test_a_slice_lies_where_it_starts(attributes, shape, result, offset):
    assert sliced(attributes, shape, result).program.tensors["b"].alias == Alias("a", offset)


@pytest.mark.parametrize(
    ("attributes", "result", "reason"),
    [
        ({}, (2, 6), "unknown before the run"),
        ({"starts": (3,), "steps": (-1,)}, (2, 6), "steps other than 1 are unsupported"),
        ({"starts": (1,), "axes": (1,)}, (4, 5), "axis 1 is not the outermost"),
        ({"starts": (1,), "axes": (2,)}, (2, 6), "axes do not match"),
        ({"starts": (1, 1), "axes": (1,)}, (2, 6), "axes do not match"),
    ],
)
def test_a_slice_that_is_no_run_of_bytes_at_a_known_place_is_a_copy(attributes, result, reason):
    (refusal,) = sliced(attributes, result=result).refusals
    assert reason in refusal.reason


def test_a_small_slice_that_outlives_the_whole_is_a_copy():
    graph = graph_of(
        [tensor("x", kind=X), tensor("a", (100,)), tensor("b", (10,)), tensor("c", (100,)),
         tensor("y", kind=Y)],
        [("Conv", ("x",), ("a",)), ("Slice", ("a",), ("b",), {"starts": (0,)}),
         ("Conv", ("x",), ("c",)), ("Conv", ("b", "c"), ("y",))],
    )  # fmt: skip
    result = explain(graph, ALL, alignment=1)
    assert result.program.tensors["b"].alias is None
    assert [refusal.reason for refusal in result.refusals] == ["sharing would not lower the load"]


def test_a_slice_of_a_graph_input_is_overwritten_only_where_the_caller_allows_it():
    graph = graph_of(
        [tensor("x", (8,), X), tensor("p", (4,)), tensor("q", (4,)), tensor("r", (4,)),
         tensor("y", (4,), Y)],
        [("Split", ("x",), ("p", "q"), {"axis": 0}), ("Relu", ("p",), ("r",)),
         ("Conv", ("q", "r"), ("y",))],
    )  # fmt: skip
    assert share(graph, ALL, alignment=1).root("r") == ("x", 0)
    spared = [kind for kind in AliasKind if kind is not AliasKind.REUSE_INPUTS]
    assert share(graph, spared, alignment=1).root("r") == ("p", 0)


def concat(
    first: TensorKind = TensorKind.ACTIVATION,
    joined: tuple[str, ...] = ("a", "b"),
    shapes: tuple[tuple[int, ...], ...] = ((1, 2, 4), (1, 3, 4), (1, 5, 4)),
    dtype: DType = DType.FLOAT32,
    op_type: str = "Concat",
) -> Program:
    """Join `a` and `b`, each made from `x`, to `c`; axis 1."""
    a, b, c = shapes
    makers = [("Conv", ("x",), ("a",))] if first is TensorKind.ACTIVATION else []
    return graph_of(
        [tensor("x", (1,), X), tensor("a", a, first, dtype), tensor("b", b, dtype=dtype),
         tensor("c", c, dtype=dtype), tensor("y", (1,), Y)],
        [*makers, ("Conv", ("x",), ("b",)), (op_type, joined, ("c",), {"axis": 1}),
         ("Conv", ("c",), ("y",))],
        inputs=("x", "a") if first is X else ("x",),
    )  # fmt: skip


@pytest.mark.parametrize("op_type", ["Concat", "CONCATENATION"])
def test_what_is_joined_is_written_inside_the_result(op_type):
    result = explain(concat(op_type=op_type), ALL, alignment=1)
    assert result.program.tensors["a"].alias == Alias("c", 0)
    assert result.program.tensors["b"].alias == Alias("c", 32)
    assert liveness(result.program, alignment=1).lower_bound == 80 + 4


def test_concat_has_an_off_switch():
    others = [kind for kind in AliasKind if kind is not AliasKind.CONCAT]
    assert share(concat(), others, alignment=1) == concat()


def test_results_of_a_chain_of_concats_share_one_storage():
    graph = graph_of(
        [tensor("x", (1,), X), *(tensor(n, (s,)) for n, s in
         [("a", 4), ("b", 4), ("ab", 8), ("c", 4), ("abc", 12)]), tensor("y", (1,), Y)],
        [("Conv", ("x",), ("a",)), ("Conv", ("a",), ("b",)), ("Concat", ("a", "b"), ("ab",)),
         ("Conv", ("ab",), ("c",)), ("Concat", ("ab", "c"), ("abc",)),
         ("Conv", ("abc",), ("y",))],
    )  # fmt: skip
    aliased = share(graph, ALL, alignment=1)
    assert [aliased.root(name) for name in ("a", "b", "ab", "c")] == [
        ("abc", 0), ("abc", 16), ("abc", 0), ("abc", 32)
    ]  # fmt: skip


UINT8 = concat(dtype=DType.UINT8, op_type="CONCATENATION")
INNER = concat(shapes=((2, 2, 4), (2, 3, 4), (2, 5, 4)))
TWICE = concat(joined=("a", "a", "b"), shapes=((1, 2, 4), (1, 1, 4), (1, 5, 4)))


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (concat(first=X), "'a' is placed already"),
        (concat(first=TensorKind.CONSTANT), "'a' is placed already"),
        (concat(first=TensorKind.STATE), "'a' is placed already"),
        (TWICE, "the tensor is joined more than once"),
        (INNER, "axis 1 is not the outermost"),
        (UINT8, "uint8 inputs may be rescaled as they are joined"),
    ],
)
def test_what_cannot_be_written_inside_the_result_is_joined_by_copying(graph, reason):
    result = explain(graph, ALL, alignment=1)
    assert result.program.tensors["a"].alias is None
    assert result.refusals[0].reason == reason


def test_an_input_of_two_concats_lies_in_one_of_them():
    graph = graph_of(
        [tensor("x", (1,), X), tensor("a"), tensor("b"), tensor("c", (16,)), tensor("d", (16,)),
         tensor("y", (1,), Y)],
        [("Conv", ("x",), ("a",)), ("Conv", ("x",), ("b",)), ("Concat", ("a", "b"), ("c",)),
         ("Concat", ("b", "a"), ("d",)), ("Conv", ("c", "d"), ("y",))],
    )  # fmt: skip
    result = explain(graph, ALL, alignment=1)
    assert result.program.root("a")[0] == result.program.root("b")[0] == "c"
    assert "'a' is itself a part of 'c'" in [refusal.reason for refusal in result.refusals]


def test_an_input_that_is_overwritten_while_the_result_is_read_keeps_its_own_storage():
    graph = graph_of(
        [tensor("x", (1,), X), tensor("a"), tensor("b"), tensor("c", (16,)), tensor("r"),
         tensor("y", (1,), Y)],
        [("Conv", ("x",), ("a",)), ("Conv", ("x",), ("b",)), ("Concat", ("a", "b"), ("c",)),
         ("Relu", ("a",), ("r",)), ("Conv", ("c", "r"), ("y",))],
    )  # fmt: skip
    result = explain(graph, ALL, alignment=1)
    assert result.program.tensors["r"].alias == Alias("a")
    assert result.program.tensors["a"].alias is None
    assert result.program.tensors["b"].alias == Alias("c", 32)
    assert "'c' and 'r' would need the same bytes" in result.refusals[0].reason


def test_a_part_that_would_not_be_aligned_is_a_copy():
    graph = concat(shapes=((1, 5, 4), (1, 16, 4), (1, 21, 4)))
    result = explain(graph, ALL, alignment=64)
    assert result.program.tensors["a"].alias == Alias("c", 0)
    assert result.program.tensors["b"].alias is None
    assert result.refusals[0].reason == "byte 80 is not aligned to 64"


def test_a_concat_whose_storage_would_be_kept_through_the_peak_is_a_copy():
    graph = graph_of(
        [tensor("x", (1,), X), tensor("a", (2,)), tensor("big", (100,)), tensor("b", (50,)),
         tensor("c", (52,)), tensor("y", (1,), Y)],
        [("Conv", ("x",), ("a",)), ("Conv", ("x",), ("big",)), ("Conv", ("big",), ("b",)),
         ("Concat", ("a", "b"), ("c",)), ("Conv", ("c",), ("y",))],
    )  # fmt: skip
    result = explain(graph, ALL, alignment=1)
    assert result.program.tensors["a"].alias is None
    assert result.refusals[-1].reason == "sharing would not lower the load"


def test_nothing_is_written_inside_what_the_caller_owns():
    graph = graph_of(
        [tensor("x", (1,), X), tensor("a"), tensor("b"), tensor("y", (16,), Y)],
        [("Conv", ("x",), ("a",)), ("Conv", ("x",), ("b",)), ("Concat", ("a", "b"), ("y",))],
    )
    assert share(graph, ALL, alignment=1).tensors["a"].alias == Alias("y", 0)
    assert share(graph, ALL, Boundary.EXCLUDE, alignment=1) == graph

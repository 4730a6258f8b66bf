from typing import Any

import pytest

from arenite.planner.errors import MissingDependencyError, SizeLimitError, UnsupportedProblemError
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.strategy import Strategy, run
from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import Rules
from arenite.planner.tensors import DType, Tensor, TensorKind
from arenite.strategies import find_order
from arenite.strategies.base import native
from arenite.strategies.place.one_pass import GreedyBySize
from arenite.strategies.place.optimal import Optimal
from arenite.strategies.place.stairs import Stairs
from arenite.strategies.place.tvm import TvmHillClimb
from support.problems import problem_of
from support.tiny_graphs import step

PROBLEM = problem_of((4, 0, 2), (8, 1, 3))


@pytest.mark.usefixtures("without_core")
def test_without_the_core_a_greedy_plan_is_the_same() -> None:
    assert GreedyBySize()(PROBLEM).offsets == (8, 0)


@pytest.mark.usefixtures("without_core")
def test_without_the_core_the_exact_search_says_what_it_needs() -> None:
    reason = Optimal().why_unsupported(PROBLEM)
    assert reason is not None
    assert "native core" in reason


@pytest.mark.usefixtures("without_core")
def test_without_the_core_an_order_names_what_is_missing() -> None:
    tensors = [
        Tensor("x", DType.UINT8, (4,), TensorKind.INPUT),
        Tensor("y", DType.UINT8, (4,), TensorKind.OUTPUT),
    ]
    program = Program.of("one", tensors, [step("n", "Conv", ("x",), ("y",))], ["x"], ["y"])
    with pytest.raises(MissingDependencyError, match="the native core"):
        find_order("given")(program, Rules())


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (([0], [1], [1], [1], []), "differ in length"),
        (([1], [1], [1], [1], [-1]), "lifetime is empty"),
        (([-1], [1], [1], [1], [-1]), "begins below 0"),
        (([0], [1], [0], [1], [-1]), "size is not positive"),
        (([0], [1], [1], [3], [-1]), "not a power of two"),
        (([0], [1], [1], [4], [2]), "unaligned"),
    ],
)
def test_columns_that_are_no_records_are_refused(
    columns: tuple[list[int], ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        native.core.Records(*columns)


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
@pytest.mark.parametrize(
    ("outlines", "orders", "reason"),
    [
        ([[]], [[0, 1]], "differ in length"),
        ([[], [0, 4, 1]], [[0, 1]], "not four numbers"),
        ([[], [-1, 4, 1, 3]], [[0, 1]], "reaches outside"),
        ([[], [1, 8, 1, 3]], [[0, 1]], "reaches outside"),
        ([[], [(1 << 62), 1 << 62, 1, 3]], [[0, 1]], "reaches outside"),
        ([[], [0, 0, 1, 3]], [[0, 1]], "is empty"),
        ([[], [0, 4, 2, 2]], [[0, 1]], "is empty"),
        ([[], [0, 4, -1, 2]], [[0, 1]], "is empty"),
        ([[], []], [], "no order"),
        ([[], []], [[0]], "does not name each record"),
        ([[], []], [[0, 1], [0, 0]], "does not name each record"),
        ([[], []], [[0, 2]], "does not name each record"),
    ],
)
def test_outlines_that_are_none_are_refused(
    outlines: list[list[int]], orders: list[list[int]], reason: str
) -> None:
    records = native.records_of(PROBLEM)
    with pytest.raises(ValueError, match=reason):
        native.core.place_outlined(records, outlines, orders, 0, 0, 0, lambda *_: False)


READ = (0, [0, 1], [1, 2], False)


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "differ in length"),
        ([(2, 2, 0, 0, [READ])], "out of range"),
        ([(1, 2, 0, 0, [(-1, [0, 1], [1, 2], False)])], "out of range"),
        ([(1, 1, 0, 0, [READ])], "not those of the result"),
        ([(1, 2, -4, 0, [READ])], "a size is negative"),
        ([(1, 2, 0, -4, [READ])], "a size is negative"),
        ([(1, 2, 0, 0, [(0, [0], [1, 2], False)])], "not those of each row"),
        ([(1, 2, 0, 0, [(0, [1, 0], [1, 2], False)])], "run backwards"),
        ([(1, 2, 0, 0, [(0, [0, 1], [1, 3], False)])], "reach outside"),
        ([(0, 2, 0, 0, [READ])], "made twice, or read before"),
    ],
)
def test_steps_in_bands_that_are_none_are_refused(steps: list[Any], reason: str) -> None:
    times = [(0.0, 0.0, 0.0, 0.0)]
    with pytest.raises(ValueError, match=reason):
        native.core.Bands([4, 4], [2, 2], steps, times)


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
@pytest.mark.parametrize(
    ("region", "reason"),
    [
        ((0, 0, 1, 1, [], [], 0, 9), "is empty"),
        ((0, 3, 1, 1, [], [], 0, 9), "reaches outside"),
        ((-1, 1, 1, 1, [], [], 0, 9), "reaches outside"),
        ((0, 1, 0, 1, [], [], 0, 9), "has no rows"),
        ((0, 1, 1, 0, [], [], 0, 9), "has no rows"),
        ((0, 2, 1, 1, [], [], 0, 9), "cannot be made row by row"),
        ((0, 1, 1, 1, [2], [], 0, 9), "out of range"),
        ((0, 1, 1, 1, [], [-1], 0, 9), "out of range"),
        ((0, 1, 1, 1, [], [], -1, 9), "a size is negative"),
    ],
)
def test_regions_that_are_none_are_refused(region: tuple[Any, ...], reason: str) -> None:
    steps = [(1, 2, 0, 0, [READ]), (-1, 0, 0, 0, [])]
    bands = native.core.Bands([4, 4], [2, 2], steps, [(0.0, 0.0, 0.0, 0.0)] * 2)
    with pytest.raises(ValueError, match=reason):
        bands.walk(*region)


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
def test_tensors_beyond_64_bits_do_not_run_in_bands() -> None:
    with pytest.raises(OverflowError):
        native.core.Bands([1 << 61] * 3, [2] * 3, [], [])


@pytest.mark.parametrize("strategy", [Optimal(), TvmHillClimb(), Stairs()])
def test_a_record_beyond_64_bits_is_named(strategy: Strategy) -> None:
    with pytest.raises(UnsupportedProblemError, match=f"record 'b' takes {1 << 70} B; supported"):
        run(strategy, problem_of((4, 0, 2), (1 << 70, 1, 3)))


@pytest.mark.parametrize(
    ("records", "culprit", "size"),
    [
        ([UsageRecord("a", 4, 0, 1), UsageRecord("b", 1 << 62, 0, 1)], "b", 1 << 62),
        ([UsageRecord("a", 1 << 61, 0, 1), UsageRecord("b", 1 << 61, 1, 2)], "a", 1 << 61),
        ([UsageRecord("a", 8, 0, 1, offset=(1 << 62) - 8)], "a", 8),
        ([UsageRecord("a", 8, 0, 1, alignment=1 << 62)], "a", 8),
        ([UsageRecord("a", 8, 0, 1 << 62)], "a", 1 << 62),
    ],
)
def test_records_that_the_core_cannot_hold_are_refused_at_its_border(
    records: list[UsageRecord], culprit: str, size: int
) -> None:
    with pytest.raises(SizeLimitError) as caught:
        native.records_of(Problem(tuple(records)))
    assert (caught.value.culprit, caught.value.size, caught.value.limit) == (
        culprit,
        size,
        1 << 62,
    )


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
@pytest.mark.parametrize(
    ("elements", "said"),
    [
        ((1 << 62, 4), f"'x' takes {1 << 62} B"),
        ((1 << 64, 4), f"'x' takes {1 << 64} B"),
        ((1 << 61, 1 << 61), f"'x' takes {1 << 61} B, the most of 3 that add up to {1 << 62} B"),
    ],
)
@pytest.mark.parametrize("order", ["given", "beam", "optimal"])
def test_an_order_of_tensors_beyond_64_bits_names_the_largest(
    order: str, elements: tuple[int, int], said: str
) -> None:
    tensors = [
        Tensor("x", DType.UINT8, elements[:1], TensorKind.INPUT),
        Tensor("y", DType.UINT8, elements[1:], TensorKind.OUTPUT),
    ]
    program = Program.of("one", tensors, [step("n", "Conv", ("x",), ("y",))], ["x"], ["y"])
    with pytest.raises(SizeLimitError, match=said):
        find_order(order)(program, Rules(alignment=1))


@pytest.mark.skipif(not native.is_built(), reason="the native core was not built")
def test_sizes_beyond_64_bits_are_refused() -> None:
    with pytest.raises(OverflowError):
        native.core.Records([0, 0], [1, 1], [1 << 61, 1 << 61], [1, 1], [-1, -1])

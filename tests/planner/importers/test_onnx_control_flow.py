"""If, Loop and Scan: what is opened, what is reserved, what is refused."""

from pathlib import Path

import pytest

from arenite.planner.errors import ModelFormatError, UnsupportedModelError
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.tensors import DType
from support.tiny_onnx import read_text

BRANCHES = """
    <then_branch = t () => (a) { inner = Abs(h) a = Neg(inner) },
     else_branch = e () => (a) { inner = Relu(h) other = Exp(inner) a = Sqrt(other) }>
"""


def op_types(graph: Program) -> list[str]:
    return [operator.operator.label for operator in graph.steps]


@pytest.mark.parametrize(
    ("flag", "expected"), [("1", ["Abs", "Neg"]), ("0", ["Relu", "Exp", "Sqrt"])]
)
def test_the_branch_of_a_known_condition_is_opened(
    tmp_path: Path, flag: str, expected: list[str]
) -> None:
    graph = read_text(
        tmp_path,
        f"(float[8] x) => (y) <bool c = {{{flag}}}> {{ h = Sin(x) y = If (c) {BRANCHES} }}",
    )
    assert op_types(graph) == ["Sin", *expected]
    assert graph.notes == ()


def test_a_condition_on_shapes_is_known(tmp_path: Path) -> None:
    text = """
        (float[N] x) => (y) <int64 zero = {0}, int64 one = {1}> {
            h = Sin(x)
            s = Shape(x)
            n = Gather(s, zero)
            c = Equal(n, one)
            y = If (c) BRANCHES
        }
    """.replace("BRANCHES", BRANCHES)
    assert op_types(read_text(tmp_path, text, dims={"N": 1})) == ["Sin", "Abs", "Neg"]
    assert op_types(read_text(tmp_path, text, dims={"N": 2})) == ["Sin", "Relu", "Exp", "Sqrt"]


def test_names_that_opened_branches_share_are_made_unique(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        "(float[8] h) => (y, z, inner) <bool c = {1}> "
        f"{{ y = If (c) {BRANCHES} z = If (c) {BRANCHES} inner = Cos(h) }}",
    )
    assert op_types(graph) == ["Abs", "Neg", "Abs", "Neg", "Cos"]
    assert graph.steps[0].outputs == ("inner.2",)
    assert graph.steps[4].outputs == ("inner",)


def test_a_branch_that_hands_an_outer_tensor_through_costs_nothing(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[8] x) => (y) <bool c = {1}> {
            h = Sin(x)
            g = If (c) <then_branch = t () => (h) {}, else_branch = e () => (n) { n = Neg(h) }>
            y = Cos(g)
        }
        """,
    )
    assert op_types(graph) == ["Sin", "Identity", "Cos"]
    assert graph.root("g") == ("h", 0)


def test_an_unknown_condition_reserves_for_the_larger_branch_and_says_so(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        f"(float[8] x, bool c) => (y) {{ h = Sin(x) k = Sin(x) [choice] y = If (c) {BRANCHES} }}",
    )
    choice = graph.steps[-1]
    assert choice.inputs == ("c", "h")
    # `inner` and `other` meet; `a` lies where `y` does.
    assert choice.operator.reserve == 2 * 8 * 4
    assert graph.tensors["y"].shape == (8,)
    assert any("'choice': the branch it takes needs at most 64 B" in n for n in graph.notes)
    scratch = next(r for r in liveness(graph).records if r.name == "choice/scratch")
    assert scratch.size == 64


def test_a_long_branch_reserves_what_is_live_at_once_and_no_more(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[8] x, bool c) => (y) {
            [choice] y = If (c) <
                then_branch = t () => (a) {
                    p = Abs(x) q = Concat<axis=0>(p, p) r = Neg(q) s = ReduceSum(r) a = Add(p, s)
                },
                else_branch = e () => (a) { a = Abs(x) }>
        }
        """,
    )
    # p, q and r; the sum takes the place of q.
    assert graph.steps[-1].operator.reserve == 32 + 64 + 64


def test_nested_branches_count_towards_the_reserve_and_capture_from_afar(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[8] x, bool c, bool d) => (y) {
            far = Sin(x)
            y = If (c) <
                then_branch = t () => (a) {
                    a = If (d) <
                        then_branch = inner_t () => (b) { p = Neg(far) b = Abs(p) },
                        else_branch = inner_e () => (b) { b = Relu(far) }>
                },
                else_branch = e () => (a) { a = Cos(far) }>
        }
        """,
    )
    assert graph.steps[-1].inputs == ("c", "d", "far")
    # The inner If makes `a`, where `y` lies, and reserves for `p`.
    assert graph.steps[-1].operator.reserve == 32


@pytest.mark.parametrize(
    ("text", "match", "culprit"),
    [
        (
            """
            (float[8] x, bool c) => (y) <int64[1] zero = {0}> {
                [choice] y = If (c) <
                    then_branch = t () => (a) { a = Neg(x) },
                    else_branch = e () => (a) { a = Unsqueeze(x, zero) }>
            }
            """,
            r"float32\[8\].*float32\[1x8\]",
            "choice",
        ),
        (
            """
            (float[8] x, float[4] z, bool c) => (y) {
                [choice] y = If (c) <
                    then_branch = t () => (a) { a = Neg(x) },
                    else_branch = e () => (a) { a = Add(x, z) }>
            }
            """,
            r"branch is unsupported: .*--value INPUT=",
            "choice",
        ),
        (
            """
            (float[8] x, int64 count, bool go) => (y) {
                [grow] y = Loop (count, go, x) <
                    body = b (int64 i, bool again, float[M] s) => (again, n)
                        { n = Concat <axis = 0> (s, s) }>
            }
            """,
            "carried value",
            "grow",
        ),
    ],
    ids=["branches of different shapes", "a branch that cannot run", "a loop whose state grows"],
)
def test_control_flow_without_a_static_plan_is_refused_by_name(
    text: str, match: str, culprit: str, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedModelError, match=match) as caught:
        read_text(tmp_path, text)
    assert caught.value.culprit == culprit


LOOP = """
    (float[8] x, int64 count, bool go) => (final, rows) <int64 three = {3}, bool true = {1}> {
        h = Sin(x)
        [repeat] final, rows = Loop (COUNT, GO, x) <
            body = b (int64 i, bool again, float[8] state) => (next_again, next, row) {
                next_again = Identity(again)
                row = Add(state, h)
                next = Neg(row)
            }>
    }
"""


def test_a_loop_stacks_its_rows_and_reserves_for_its_body(tmp_path: Path) -> None:
    graph = read_text(tmp_path, LOOP.replace("COUNT", "three").replace("GO", "true"))
    repeat = graph.steps[-1]
    assert graph.tensors["final"].shape == (8,)
    assert graph.tensors["rows"].shape == (3, 8)
    assert repeat.inputs == ("three", "true", "x", "h")
    # Given: i, again, state; made: next_again, row, next; all are there at the end.
    assert repeat.operator.reserve == 16 + 16 + 32 + 16 + 32 + 32
    assert [note.partition(" B,")[0] for note in graph.notes] == [
        "Loop 'repeat': its body needs at most 144"
    ]


def test_a_loop_without_a_condition_runs_its_count(tmp_path: Path) -> None:
    graph = read_text(tmp_path, LOOP.replace("COUNT", "three").replace("GO", '""'))
    assert graph.tensors["rows"].shape == (3, 8)


@pytest.mark.parametrize(
    ("go", "again", "num_rows"), [("false", "again", 0), ("true", "false", 1), ("true", "true", 3)]
)
def test_a_loop_ends_where_its_condition_is_known_to_fail(
    tmp_path: Path, go: str, again: str, num_rows: int
) -> None:
    text = LOOP.replace("COUNT", "three").replace("GO", go)
    text = text.replace("bool true = {1}", "bool true = {1}, bool false = {0}")
    graph = read_text(tmp_path, text.replace("Identity(again)", f"Identity({again})"))
    assert graph.tensors["rows"].shape == (num_rows, 8)


@pytest.mark.parametrize("again", ["again", "stop"])
def test_rows_of_a_loop_that_may_end_early_are_planned_for_all_of_them(
    tmp_path: Path, again: str
) -> None:
    text = LOOP.replace("COUNT", "three").replace("GO", "go")
    text = text.replace("next_again = Identity(again)", "stop = Not(go) next_again = Or(again, X)")
    graph = read_text(tmp_path, text.replace("X", again))
    assert graph.tensors["rows"].shape == (3, 8)
    assert graph.steps[-1].operator.is_bound
    assert any("depends on data; planned at its upper bound" in note for note in graph.notes)


@pytest.mark.parametrize(("count", "go"), [("count", "true"), ("count", "go"), ('""', "true")])
def test_rows_of_an_unknown_number_are_refused_by_name(
    tmp_path: Path, count: str, go: str
) -> None:
    with pytest.raises(UnsupportedModelError, match="number of iterations") as caught:
        read_text(tmp_path, LOOP.replace("COUNT", count).replace("GO", go))
    assert caught.value.culprit == "repeat"


def test_a_loop_that_only_carries_may_run_any_number_of_times(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[8] x, int64 count, bool go) => (y) {
            y = Loop (count, go, x) <
                body = b (int64 i, bool again, float[8] s) => (again, n) { n = Neg(s) }>
        }
        """,
    )
    assert graph.tensors["y"].shape == (8,)


def test_a_scan_slices_what_it_reads_and_stacks_what_it_makes(tmp_path: Path) -> None:
    graph = read_text(
        tmp_path,
        """
        (float[4] start, float[5, 4] rows) => (last, sums) {
            last, sums = Scan <num_scan_inputs = 1, scan_output_axes = [1],
                body = b (float[4] state, float[4] row) => (next, out) {
                    next = Add(state, row)
                    out = Identity(next)
                }> (start, rows)
        }
        """,
    )
    assert graph.tensors["last"].shape == (4,)
    assert graph.tensors["sums"].shape == (4, 5)
    assert graph.tensors["sums"].dtype is DType.FLOAT32
    # state, row, and `next`, which `out` is.
    assert graph.steps[0].operator.reserve == 3 * 16


def test_a_body_that_does_not_fit_its_operator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="number of inputs"):
        read_text(
            tmp_path,
            """
            (float[8] x, int64 count, bool go) => (y) {
                y = Loop (count, go, x) <body = b (int64 i, bool again) => (again, i) {}>
            }
            """,
        )

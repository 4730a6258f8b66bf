from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.placement.problem import load_spans
from arenite.planner.programs.diagnosis import diagnose
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import Boundary
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from support.tiny_graphs import step


def tensor(name, size, kind=TensorKind.ACTIVATION):
    return Tensor(name, DType.UINT8, (size,), kind)


def diagnosis_of(skip):
    """A chain of three operators; with `skip`, the last also reads what the first made."""
    tensors = [tensor("x", 1, TensorKind.INPUT), tensor("a", 10), tensor("b", 20),
               tensor("c", 20), tensor("y", 1, TensorKind.OUTPUT)]  # fmt: skip
    operators = [
        step("first", "Conv", ("x",), ("a",)),
        step("second", "Conv", ("a",), ("b",)),
        step("third", "Conv", ("b",), ("c",), scratch=3),
        step("last", "Add", ("c", "a") if skip else ("c",), ("y",)),
    ]
    graph = Program.of("test", tensors, operators, ["x"], ["y"])
    return diagnose(graph, liveness(graph, alignment=1))


def test_load_is_working_set_plus_carried():
    steps = diagnosis_of(skip=True).steps
    assert [step.load for step in steps] == [11, 30, 53, 31]
    assert [step.working_set for step in steps] == [11, 30, 43, 31]
    assert [step.carried for step in steps] == [0, 0, 10, 0]


def test_a_chain_is_bound_by_its_working_set():
    diagnosis = diagnosis_of(skip=False)
    assert diagnosis.binding is not None
    assert (diagnosis.binding.operator, diagnosis.binding.load) == ("third", 43)
    assert diagnosis.largest_working_set == 43
    assert "only aliasing, fusing or tiling" in diagnosis.advice


def test_a_skip_connection_is_carried_and_could_be_saved():
    advice = diagnosis_of(skip=True).advice
    assert "step 2 (third)" in advice
    assert "10 B live there untouched" in advice
    assert "save up to 10 B" in advice


def test_of_two_equal_peaks_the_one_its_operator_fills_binds():
    tensors = [tensor("x", 10, TensorKind.INPUT), tensor("a", 10), tensor("b", 10),
               tensor("c", 10), tensor("y", 10, TensorKind.OUTPUT)]  # fmt: skip
    operators = [
        step("first", "Conv", ("x",), ("a",)),
        step("carrying", "Conv", ("a",), ("b",)),
        step("full", "Add", ("x", "b"), ("c",)),
        step("last", "Conv", ("c",), ("y",)),
    ]
    graph = Program.of("test", tensors, operators, ["x"], ["y"])
    diagnosis = diagnose(graph, liveness(graph, alignment=1))
    assert [(step.load, step.carried) for step in diagnosis.steps[1:3]] == [(30, 10), (30, 0)]
    assert "binds at step 2 (full)" in diagnosis.advice


@st.composite
def graphs(draw):
    """Operators that each read up to three earlier tensors and write one."""
    names = ["x"]
    tensors = [tensor("x", draw(st.integers(0, 40)), TensorKind.INPUT)]
    operators = []
    for number in range(draw(st.integers(1, 8))):
        reads = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
        names.append(f"t{number}")
        tensors.append(tensor(f"t{number}", draw(st.integers(0, 40))))
        scratch = draw(st.sampled_from((0, 0, 7)))
        operators.append(step(f"op{number}", "Op", tuple(reads), (f"t{number}",), {}, scratch))
    return Program.of("random", tensors, operators, ["x"], [names[-1]])


@given(graphs(), st.sampled_from(Boundary), st.sampled_from((1, 16)))
def test_what_is_diagnosed_is_the_load_of_the_problem(graph, boundary, alignment):
    problem = liveness(graph, boundary=boundary, alignment=alignment)
    diagnosis = diagnose(graph, problem)
    spanned = [0] * len(graph.steps)
    for span in load_spans(problem.records):
        spanned[span.start : span.end] = [span.load] * (span.end - span.start)
    assert [step.load for step in diagnosis.steps] == spanned
    assert all(step.carried >= 0 for step in diagnosis.steps)
    assert diagnosis.binding is not None
    assert diagnosis.binding.load == problem.lower_bound
    assert diagnosis.largest_working_set <= problem.lower_bound


def test_a_graph_without_operators_has_nothing_to_lower():
    graph = Program.of("test", [], [], [], [])
    diagnosis = diagnose(graph, liveness(graph))
    assert diagnosis.binding is None
    assert "No tensor is live" in diagnosis.advice


def test_rows_of_an_outline_are_live_and_worked_on_as_rows():
    rows = [Tensor(f"x{row}", DType.UINT8, (8,), alias=Alias("x", 8 * row)) for row in range(3)]
    tensors = [tensor("x", 24, TensorKind.INPUT), *rows, tensor("a", 4), tensor("b", 4),
               tensor("y", 4, TensorKind.OUTPUT)]  # fmt: skip
    operators = [
        step("first", "Conv", ("x0", "x1"), ("a",)),
        step("second", "Conv", ("x1", "x2", "a"), ("b",)),
        step("third", "Add", ("x2", "x2", "b"), ("y",)),
    ]
    program = Program.of("test", tensors, operators, ["x"], ["y"])
    steps = diagnose(program, liveness(program, alignment=1, outlines=True)).steps
    assert [(step.load, step.working_set) for step in steps] == [(28, 20), (24, 24), (16, 16)]

from arenite.planner.diagnosis import diagnose
from arenite.planner.dtypes import DType
from arenite.planner.graph import Graph, Operator, Tensor, TensorKind
from arenite.planner.liveness import liveness


def tensor(name, size, kind=TensorKind.ACTIVATION):
    return Tensor(name, DType.UINT8, (size,), kind)


def diagnosis_of(skip):
    """A chain of three operators; with `skip`, the last also reads what the first made."""
    tensors = [tensor("x", 1, TensorKind.INPUT), tensor("a", 10), tensor("b", 20),
               tensor("c", 20), tensor("y", 1, TensorKind.OUTPUT)]  # fmt: skip
    operators = [
        Operator("first", "Conv", ("x",), ("a",)),
        Operator("second", "Conv", ("a",), ("b",)),
        Operator("third", "Conv", ("b",), ("c",), scratch=3),
        Operator("last", "Add", ("c", "a") if skip else ("c",), ("y",)),
    ]
    graph = Graph.of("test", tensors, operators, ["x"], ["y"])
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


def test_a_graph_without_operators_has_nothing_to_lower():
    graph = Graph.of("test", [], [], [], [])
    diagnosis = diagnose(graph, liveness(graph))
    assert diagnosis.binding is None
    assert "nothing to lower" in diagnosis.advice

from pathlib import Path

from arenite.planner.placement import verification as verify
from arenite.planner.programs import run_verification as verify_run
from arenite.planner.programs.program import Program
from arenite.planner.programs.uses import Uses
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from support.tiny_graphs import step


def tensor(name, kind=TensorKind.ACTIVATION, alias=None):
    return Tensor(name, DType.UINT8, (8,), kind, alias=alias)


def program():
    """Return two steps: the first reads an input and weights, the second a view and a state."""
    tensors = [
        tensor("x", TensorKind.INPUT), tensor("unread", TensorKind.INPUT),
        tensor("w", TensorKind.CONSTANT), tensor("s", TensorKind.STATE),
        tensor("a"), tensor("view", alias=Alias("a")), tensor("y", TensorKind.OUTPUT),
    ]  # fmt: skip
    steps = [step("one", "Conv", ("x", "w"), ("a",)), step("two", "Add", ("view", "s"), ("y",))]
    return Program.of("uses", tensors, steps, ("x", "unread"), ("y",))


def test_storages_are_touched_through_views_and_constants_have_none():
    uses = Uses.of(program())
    assert uses.reads == (("x",), ("a", "s"))
    assert uses.writes == (("a",), ("y",))
    assert (uses.given, uses.kept) == (("x", "unread", "s"), ("s", "y"))


def test_inputs_and_states_live_before_all_steps_states_and_outputs_after_them():
    lifetimes = Uses.of(program()).lifetimes()
    assert lifetimes == {"x": (-1, 1), "unread": (-1, 0), "s": (-1, 3), "a": (0, 2), "y": (1, 3)}
    assert list(lifetimes) == ["x", "unread", "s", "a", "y"]
    assert {name: life.among(2) for name, life in lifetimes.items()} == {
        "x": (0, 1), "unread": (0, 1), "s": (0, 2), "a": (0, 2), "y": (1, 2),
    }  # fmt: skip


def test_tensors_may_count_each_on_its_own():
    lifetimes = Uses.of(program(), by_tensor=True).lifetimes()
    assert (lifetimes["a"], lifetimes["view"]) == ((0, 1), (1, 2))


def test_the_checkers_derive_lifetimes_on_their_own():
    for checker in (verify, verify_run):
        text = Path(checker.__file__).read_text()
        assert "planner.uses" not in text
        assert "planner.liveness" not in text

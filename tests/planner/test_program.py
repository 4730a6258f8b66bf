import pytest

from arenite.planner.errors import ModelError, OrderError
from arenite.planner.programs.program import Program
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from support.steps import step


def tensor(name, shape=(4,), kind=TensorKind.ACTIVATION, alias=None):
    return Tensor(name, DType.FLOAT32, shape, kind, alias)


X = tensor("x", kind=TensorKind.INPUT)
A = tensor("a")
Y = tensor("y", kind=TensorKind.OUTPUT)
FIRST = step("first", "Conv", ("x",), ("a",))
SECOND = step("second", "Conv", ("a", ""), ("y",))


def program(tensors=(X, A, Y), steps=(FIRST, SECOND), inputs=("x",), outputs=("y",)):
    return Program.of("test", tensors, steps, inputs, outputs)


def test_a_sound_program_is_built_and_its_sizes_are_bytes():
    assert program().tensors["a"].size == 16


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"tensors": (X, A, A, Y)}, "two tensors are named 'a'"),
        ({"tensors": (X, Y)}, "tensor 'a' is not in the program"),
        ({"inputs": ("z",)}, "boundary tensor 'z' is not in it"),
        ({"outputs": ("z",)}, "boundary tensor 'z' is not in it"),
        ({"steps": (FIRST, FIRST)}, "two steps are named 'first'"),
        ({"steps": (SECOND, FIRST)}, "reads 'a' before it is written"),
        ({"steps": (FIRST,)}, "output 'y' is never written"),
        (
            {"steps": (FIRST, SECOND, step("third", "Conv", ("x",), ("a",)))},
            "writes 'a' a second time",
        ),
        ({"tensors": (X, tensor("a", alias=Alias("z")), Y)}, "alias leads to 'z'"),
        ({"tensors": (X, tensor("a", alias=Alias("a")), Y)}, "alias leads to 'a'"),
        (
            {"tensors": (X, tensor("a", alias=Alias("y")), tensor("y", alias=Alias("a")))},
            "alias leads to 'a'",
        ),
        ({"tensors": (X, tensor("a", alias=Alias("x", 4)), Y)}, "not inside 'x'"),
        ({"tensors": (X, tensor("a", alias=Alias("x", -4)), Y)}, "not inside 'x'"),
    ],
)
def test_a_broken_program_is_refused(parts, message):
    with pytest.raises(ModelError, match=message):
        program(**parts)


def test_a_negative_dimension_is_refused():
    with pytest.raises(ModelError, match="negative dimension"):
        tensor("a", (4, -1))


def test_a_state_may_be_read_before_it_is_written_and_written_again():
    state = tensor("s", kind=TensorKind.STATE)
    update = step("update", "Assign", ("s", "y"), ("s",))
    assert program((X, A, Y, state), (FIRST, SECOND, update)).steps[-1] is update


def test_aliases_lead_to_the_storage_and_the_byte():
    inner = tensor("v", (1,), alias=Alias("w", 4))
    middle = tensor("w", (2,), alias=Alias("x", 8))
    assert program((X, A, Y, middle, inner)).root("v") == ("x", 12)


def test_an_order_must_name_each_step_once_and_be_topological():
    assert program().reordered(["first", "second"]) == program()
    with pytest.raises(ModelError, match="each of its 2 steps once"):
        program().reordered(["first", "first"])
    with pytest.raises(ModelError, match="before it is written"):
        program().reordered(["second", "first"])


def test_an_order_keeps_reads_of_a_state_on_their_side_of_its_writes():
    state, old = tensor("s", kind=TensorKind.STATE), tensor("old")
    read = step("read", "Copy", ("s",), ("old",))
    write = step("write", "Copy", ("x",), ("s",))
    again = step("again", "Add", ("old", "s"), ("y",))
    found = program((X, Y, state, old), (read, write, again))
    assert found.reordered(["read", "write", "again"]) == found
    for order in (["write", "read", "again"], ["read", "again", "write"]):
        with pytest.raises(OrderError, match="would find the state 's' as another step leaves"):
            found.reordered(order)


def test_operands_are_listed_once_and_absent_ones_not_at_all():
    add = step("o", "Add", ("a", "", "a"), ("", "y"))
    assert (add.reads, add.writes) == (("a",), ("y",))

"""Programs, the names in them, and the rows that steps read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.errors import ModelError, OrderError
from arenite.planner.programs.program import Names, Program
from arenite.planner.programs.row_steps import RowReads
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from support.tiny_graphs import step


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
            "writes 'a', which is written already",
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
        with pytest.raises(OrderError, match="between the same writes of state 's'"):
            found.reordered(order)


def test_operands_are_listed_once_and_absent_ones_not_at_all():
    add = step("o", "Add", ("a", "", "a"), ("", "y"))
    assert (add.reads, add.writes) == (("a",), ("y",))


def test_a_free_name_is_given_as_wanted_and_a_taken_one_numbered() -> None:
    names = Names(["a"])
    assert [names.take(wanted) for wanted in ("a", "b", "a", "a.2", "b")] == [
        "a.2", "b", "a.3", "a.2.2", "b.2",
    ]  # fmt: skip


@given(st.lists(st.text("ab.2", min_size=1, max_size=4)))
def test_no_name_is_given_twice(wanted: list[str]) -> None:
    names = Names(["a"])
    given_out = [names.take(name) for name in wanted]
    assert len({"a", *given_out}) == len(wanted) + 1


PADDED = RowReads(0, "x", (0, 0, 1, 2), (2, 3, 4, 4))
"""Four rows, each from the one above, itself, and the one below."""


def test_a_band_reads_from_its_first_row_to_its_last():
    assert PADDED.needed(0, 1) == (0, 2)
    assert PADDED.needed(1, 3) == (0, 4)


def test_a_row_is_needed_until_its_last_reader_is_made():
    assert [PADDED.still_needed(end) for end in range(5)] == [0, 0, 1, 2, 4]

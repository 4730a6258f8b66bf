"""Outlines of the storages that a program's tensors lie in."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.planner.errors import ModelError, OrderError
from arenite.planner.placement.outline import Stair
from arenite.planner.programs.program import Program
from arenite.planner.programs.records import liveness
from arenite.planner.programs.rules import Rules
from arenite.planner.rewrites.derivation import derive
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from arenite.strategies import find_order
from support.tiny_graphs import step

ROW = 8


def image(name, kind=TensorKind.ACTIVATION, rows=3, size=None):
    return Tensor(name, DType.UINT8, (rows * ROW if size is None else size,), kind)


def row(of, index, size=ROW):
    return Tensor(f"{of}{index}", DType.UINT8, (size,), alias=Alias(of, index * ROW))


def by_rows(tensors, operands, inputs=("x",), outputs=("y",), alignment=1):
    """Return the outlines by storage of a program whose steps take and make rows."""
    steps = [
        step(f"op{index}", "Conv", reads, writes) for index, (reads, writes) in enumerate(operands)
    ]
    program = Program.of("rows", tensors, steps, inputs, outputs)
    problem = liveness(program, alignment=alignment, outlines=True)
    return {record.name: record.outline for record in problem.records}


X, Y, A = image("x", TensorKind.INPUT), image("y", TensorKind.OUTPUT), image("a")
XS, YS, AS = ([row(of, index) for index in range(3)] for of in "xya")
WINDOWS = [(("x0", "x1"), ("y0",)), (("x0", "x1", "x2"), ("y1",)), (("x1", "x2"), ("y2",))]
JOIN_A, JOIN_Y = ((("a0", "a1", "a2"), ("a",)), (("y0", "y1", "y2"), ("y",)))
"""Steps that find the rows where they belong, and declare the whole written."""


def test_rows_of_an_input_live_to_their_last_reader_and_of_an_output_from_their_writer():
    assert by_rows([X, Y, *XS, *YS], [*WINDOWS, JOIN_Y]) == {
        "x": (Stair(0, 8, 0, 2), Stair(8, 16, 0, 3)),
        "y": (Stair(0, 8, 0, 4), Stair(8, 8, 1, 4), Stair(16, 8, 2, 4)),
    }


def test_rows_of_an_activation_live_from_writer_to_reader():
    copies = [((f"x{row}",), (f"a{row}",)) for row in range(3)]
    assert by_rows([X, Y, A, *XS, *AS], [*copies, JOIN_A, (("a",), ("y",))])["a"] == (
        Stair(0, 8, 0, 5), Stair(8, 8, 1, 5), Stair(16, 8, 2, 5),
    )  # fmt: skip


def test_a_whole_tensor_read_by_rows_is_born_at_once():
    operands = [
        (("x",), ("a",)),
        (("a0",), ("y0",)),
        (("a1",), ("y1",)),
        (("a2",), ("y2",)),
        JOIN_Y,
    ]
    assert by_rows([X, Y, A, *AS, *YS], operands)["a"] == (
        Stair(0, 8, 0, 2), Stair(8, 8, 0, 3), Stair(16, 8, 0, 4),
    )  # fmt: skip


def test_rows_that_nothing_touches_are_free():
    operands = [(("x",), ("a0",)), (("a0",), ("a2",)), (("a2",), ("y",))]
    found = by_rows([X, Y, A, *AS], operands)["a"]
    assert found == (Stair(0, 8, 0, 2), Stair(16, 8, 1, 3))


def test_the_bytes_that_rounding_adds_belong_to_the_last_row():
    found = by_rows([X, Y, *XS, *YS], [*WINDOWS, JOIN_Y], alignment=16)
    assert found["y"][-1] == Stair(16, 16, 2, 4)
    assert found["x"][-1] == Stair(8, 24, 0, 3)


def test_a_view_keeps_the_bytes_under_it():
    view = Tensor("v", DType.UINT8, (4,), alias=Alias("x0", 2))
    operands = [(("x",), ("a",)), (("v", "a"), ("y",))]
    assert by_rows([X, Y, A, XS[0], view], operands)["x"] == (
        Stair(0, 2, 0, 1), Stair(2, 4, 0, 2), Stair(6, 18, 0, 1),
    )  # fmt: skip


def test_a_result_that_overwrites_a_row_is_needed_as_long_as_both():
    over = replace(row("a", 1), name="over")
    operands = [(("x",), ("a",)), (("a1",), ("over",)), (("over",), ("y",))]
    found = by_rows([X, Y, A, AS[1], over], operands)["a"]
    assert found == (Stair(0, 8, 0, 1), Stair(8, 8, 0, 3), Stair(16, 8, 0, 1))


@pytest.mark.parametrize("is_read", [False, True])
def test_bytes_are_free_until_they_are_written_again(is_read):
    again, between = replace(row("a", 1), name="again"), image("b")
    makers = ("b", "a1") if is_read else ("b",)
    operands = [(("x",), ("a1",)), (("a1",), ("b",)), (("x",), ()), (makers, ("again",))]
    tensors = [X, Y, A, between, AS[1], again]
    found = by_rows(tensors, [*operands, (("again",), ("y",))])["a"]
    assert found == ((Stair(8, 8, 0, 5),) if is_read else (Stair(8, 8, 0, 2), Stair(8, 8, 3, 5)))


def test_rows_beside_each_other_are_one_stair_at_each_time():
    pair = Tensor("pair", DType.UINT8, (2 * ROW,), alias=Alias("a", ROW))
    operands = [
        (("x",), ("a1",)), (("x",), ("a2",)), (("a1", "a2"), ("b",)), (("b",), ("pair",)),
        (("pair",), ("y",)),
    ]  # fmt: skip
    assert by_rows([X, Y, A, image("b"), *AS[1:], pair], operands)["a"] == (
        Stair(8, 8, 0, 3), Stair(8, 8, 3, 5), Stair(16, 8, 1, 3), Stair(16, 8, 3, 5),
    )  # fmt: skip


def test_an_input_inside_a_larger_storage_holds_only_its_own_bytes_from_the_start():
    x = replace(X, alias=Alias("all", 8), shape=(8,))
    whole = image("all")
    operands = [(("x",), ("a",)), (("a",), ("all0",)), (("x", "all0"), ("y",))]
    assert by_rows([x, Y, A, whole, row("all", 0)], operands)["all"] == (
        Stair(0, 8, 1, 3), Stair(8, 8, 0, 3),
    )  # fmt: skip


def test_states_and_storages_of_one_tensor_are_whole():
    state = image("s", TensorKind.STATE)
    operands = [(("x", "s0"), ("a",)), (("a",), ("y",))]
    tensors = [X, Y, A, state, row("s", 0)]
    assert set(by_rows(tensors, operands).values()) == {()}


def test_outlines_are_asked_for():
    tensors = [X, Y, *XS, *YS]
    steps = [
        step(f"op{i}", "Conv", reads, writes)
        for i, (reads, writes) in enumerate([*WINDOWS, JOIN_Y])
    ]
    program = Program.of("rows", tensors, steps, ("x",), ("y",))
    assert not derive(program, Rules()).problem.has_outlines
    assert derive(program, Rules(outlines=True)).problem.has_outlines


@st.composite
def programs(draw):
    """Draw programs whose steps take and make rows of two contiguous tensors."""
    rows = draw(st.integers(1, 5))
    tensors = [image("x", TensorKind.INPUT, rows), image("a", rows=rows), image("y", size=4)]
    tensors += [row(of, index) for of in "xa" for index in range(rows)]
    made = draw(st.permutations(range(rows)))
    operands, known = [], ["x", *(f"x{index}" for index in range(rows))]
    for index in made:
        reads = draw(st.lists(st.sampled_from(known), unique=True, max_size=4))
        operands.append((tuple(reads), (f"a{index}",)))
        known.append(f"a{index}")
    last = draw(st.lists(st.sampled_from(known), unique=True, max_size=4))
    steps = [step(f"op{i}", "Conv", reads, writes) for i, (reads, writes) in enumerate(operands)]
    return Program.of(
        "random", tensors, [*steps, step("last", "Conv", last, ("y",))], ("x",), ("y",)
    )


@given(program=programs(), alignment=st.sampled_from((1, 16, 64)))
@settings(max_examples=80, deadline=None)
def test_every_byte_is_needed_from_its_first_to_its_last_use(program, alignment):
    outlined = liveness(program, alignment=alignment, outlines=True)
    assert outlined.hulls() == liveness(program, alignment=alignment)
    for record in outlined.records:
        used = {}
        for number, each in enumerate(program.steps):
            for name in (*each.reads, *each.writes):
                root, first = program.root(name)
                if root == record.name:
                    for byte in range(first, first + program.tensors[name].size):
                        used.setdefault(byte, []).append(number)
        if record.name == "x":
            for byte in range(program.tensors["x"].size):
                used.setdefault(byte, []).append(0)
        if record.name == "y":
            assert not record.outline
            continue
        needed = {
            (byte, number)
            for byte, steps in used.items()
            for number in range(min(steps), max(steps) + 1)
        }
        size = program.tensors[record.name].size
        covered = {
            (byte, number)
            for stair in record.stairs
            for byte in range(stair.offset, min(size, stair.offset + stair.size))
            for number in range(stair.start, stair.end)
        }
        assert covered == needed


def on_a_stream(*names):
    """Return a program that reads old bytes, which a state keeps, and new ones behind them."""
    state = image("state", TensorKind.STATE, rows=2)
    tensors = [
        X, Y, A, image("rows"), replace(state, alias=Alias("rows")),
        replace(image("new", rows=1), alias=Alias("rows", 2 * ROW)),
        replace(state, name="kept", kind=TensorKind.ACTIVATION, alias=Alias("state")),
    ]  # fmt: skip
    steps = {
        "begin": step("begin", "Conv", ("x",), ("a",)),
        "make": step("make", "Conv", ("a",), ("new",)),
        "read": step("read", "Conv", ("rows",), ("y",)),
        "keep": step("keep", "Conv", ("state", "new"), ("kept",)),
        "end": step("end", "Conv", ("a",), ()),
    }
    return Program.of("rows", tensors, [steps[name] for name in names], ["x"], ["y"])


def test_bytes_that_a_state_leaves_of_a_storage_are_free_while_nothing_is_there():
    program = on_a_stream("begin", "make", "read", "keep", "end")
    rows = {each.name: each for each in liveness(program, alignment=1).records}["rows"]
    assert rows.outline == (Stair(0, 16, 0, 5), Stair(16, 8, 1, 4))
    assert program.state_storages == {"rows"}


def test_a_tensor_beside_a_state_is_read_once_its_other_part_is_written():
    with pytest.raises(ModelError, match="'read' reads 'rows' before it is written"):
        on_a_stream("begin", "read", "make", "keep")


def test_an_order_keeps_reads_of_a_storage_on_their_side_of_the_writes_of_its_state():
    program = on_a_stream("begin", "make", "read", "keep")
    with pytest.raises(OrderError, match="between the same writes of state 'rows'"):
        program.reordered(["begin", "make", "keep", "read"])
    found = derive(program, Rules(alignment=1), find_order("best")).program
    assert [each.name for each in found.steps] == ["begin", "make", "read", "keep"]

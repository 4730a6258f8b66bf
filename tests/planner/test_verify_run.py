"""What a run must find: rows written before they are read, in records that live so long."""

from dataclasses import replace

import pytest

from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.problem import Rectangle
from arenite.planner.programs.run import PlacedRows, Rows, Run, TouchingTurn
from arenite.planner.programs.run_verification import (
    OverwrittenRowsError,
    UnheldRowsError,
    UnwrittenRowsError,
    verify_run,
)

ROW = 8
"""Bytes of a row."""


def turn(step, first, reads, writes):
    return TouchingTurn(step, first, 1, tuple(Rows(*each) for each in reads), tuple(writes))


def ring_of(rows):
    """Return a run over `x`, a ring of so many rows of `a`, and `y`, with its records.

    `f` makes a row of `a` from one of `x`, `g` a row of `y` from two of `a`; each row of `a` has a
    record for as long as it is needed.
    """
    base = 4 * ROW
    offsets = tuple(base + row % rows * ROW for row in range(4))
    order = [("f", 0), ("f", 1), ("g", 0), ("f", 2), ("g", 1), ("f", 3), ("g", 2)]
    turns = tuple(
        turn("f", row, [("x", row, row + 1)], [Rows("a", row, row + 1)])
        if step == "f"
        else turn("g", row, [("a", row, row + 2)], [Rows("y", row, row + 1)])
        for step, row in order
    )
    top = base + rows * ROW
    born = [order.index(("f", row)) for row in range(4)]
    read = [order.index(("g", min(row, 2))) for row in range(4)]
    records = (
        Rectangle("x", "arena", 0, 4 * ROW, 0, 6),
        *(
            Rectangle(f"a{row}", "arena", offsets[row], ROW, born[row], read[row] + 1)
            for row in range(4)
        ),
        Rectangle("y", "arena", top, 3 * ROW, 2, 7),
    )
    tensors = (
        PlacedRows("x", "arena", ROW, tuple(range(0, 4 * ROW, ROW))),
        PlacedRows("a", "arena", ROW, offsets),
        PlacedRows("y", "arena", ROW, tuple(range(top, top + 3 * ROW, ROW))),
    )
    return Run(tensors, turns, ("x",), ("y",)), records


RIGHT, RECORDS = ring_of(2)


def changed(run, number, **fields):
    turns = list(run.turns)
    turns[number] = replace(turns[number], **fields)
    return replace(run, turns=tuple(turns))


def ending(name, end):
    return tuple(replace(each, end=end) if each.name == name else each for each in RECORDS)


def test_a_right_run_passes():
    verify_run(RIGHT, RECORDS)


def test_a_record_for_rows_that_follow_one_another_does_as_well():
    lives = [each for each in RECORDS if not each.name.startswith("a")]
    verify_run(RIGHT, [*lives, Rectangle("a", "arena", 4 * ROW, 2 * ROW, 0, 7)])


def swapped(one, other):
    turns = list(RIGHT.turns)
    turns[one], turns[other] = turns[other], turns[one]
    return replace(RIGHT, turns=tuple(turns))


def without(number):
    return replace(RIGHT, turns=RIGHT.turns[:number] + RIGHT.turns[number + 1 :])


@pytest.mark.parametrize(
    ("run", "records", "error", "words"),
    [
        pytest.param(
            RIGHT, ending("a0", 2), UnheldRowsError,
            "turn 2, 'g', reads row 0 of 'a', which lies in no record that is live",
            id="a row freed a turn early",
        ),
        pytest.param(
            RIGHT, ending("y", 6), UnheldRowsError,
            "turn 6, 'g', writes row 2 of 'y', which lies in no record that is live",
            id="a result freed a turn early",
        ),
        pytest.param(
            swapped(0, 1), RECORDS, UnheldRowsError, "turn 0, 'f', writes row 1 of 'a'",
            id="turns swapped",
        ),
        pytest.param(
            swapped(1, 2), RECORDS, UnwrittenRowsError,
            "turn 1, 'g', reads row 1 of 'a' before it is written",
            id="a reader before its maker",
        ),
        pytest.param(
            changed(RIGHT, 1, writes=()), RECORDS, UnwrittenRowsError,
            "turn 2, 'g', reads row 1 of 'a' before it is written",
            id="a turn missing",
        ),
        pytest.param(
            changed(RIGHT, 6, writes=()), RECORDS, UnwrittenRowsError,
            "after the last turn the caller reads row 2 of 'y' before it is written",
            id="a turn of a result missing",
        ),
        pytest.param(
            replace(RIGHT, inputs=()), RECORDS, UnwrittenRowsError,
            "turn 0, 'f', reads row 0 of 'x' before it is written",
            id="an input that nobody gives",
        ),
        pytest.param(
            replace(RIGHT, tensors=(RIGHT.tensors[0], replace(RIGHT.tensors[1], offsets=(32,) * 4),
                    RIGHT.tensors[2])),
            [*(each for each in RECORDS if each.name[0] != "a"),
             Rectangle("a", "arena", 4 * ROW, 2 * ROW, 0, 7)],
            OverwrittenRowsError,
            "turn 2, 'g', reads row 0 of 'a', where row 1 of 'a' was written after it",
            id="a ring one row too small",
        ),
    ],
)  # fmt: skip
def test_each_mutation_is_noticed_by_one_clear_error(run, records, error, words):
    with pytest.raises(error) as caught:
        verify_run(run, records)
    assert str(caught.value).startswith(words)
    assert isinstance(caught.value, InvalidPlanError)
    assert caught.value.records


def test_a_turn_that_is_left_out_shifts_all_lifetimes_and_is_noticed():
    with pytest.raises(InvalidPlanError):
        verify_run(without(3), RECORDS)


def test_what_a_record_held_is_forgotten_when_another_begins_in_its_place():
    tensors = (PlacedRows("x", "arena", ROW, (0,)), PlacedRows("y", "arena", ROW, (ROW,)))
    turns = (
        TouchingTurn("f", 0, 0, (), ()),
        TouchingTurn("g", 0, 0, (Rows("x", 0, 1),), (Rows("y", 0, 1),)),
    )
    run = Run(tensors, turns, ("x",), ("y",))
    y = Rectangle("y", "arena", ROW, ROW, 1, 2)
    verify_run(run, [Rectangle("x", "arena", 0, ROW, 0, 2), y])
    in_turn = [Rectangle("x", "arena", 0, ROW, 0, 1), Rectangle("z", "arena", 0, ROW, 1, 2), y]
    with pytest.raises(UnwrittenRowsError):
        verify_run(run, in_turn)


def test_a_view_finds_what_another_tensor_wrote_and_part_of_it():
    tensors = (
        PlacedRows("x", "arena", 2 * ROW, (0,)),
        PlacedRows("part of x", "arena", ROW, (ROW,)),
        PlacedRows("y", "arena", ROW, (2 * ROW,)),
    )
    turns = (TouchingTurn("f", 0, 0, (Rows("part of x", 0, 1),), (Rows("y", 0, 1),)),)
    whole = [Rectangle("all", "arena", 0, 3 * ROW, 0, 1)]
    verify_run(Run(tensors, turns, ("x",), ("y",)), whole)


def test_rows_in_another_memory_are_others():
    tensors = (PlacedRows("x", "arena", ROW, (0,)), PlacedRows("y", "second", ROW, (0,)))
    turns = (TouchingTurn("f", 0, 0, (Rows("x", 0, 1),), (Rows("y", 0, 1),)),)
    run = Run(tensors, turns, ("x",), ("y",))
    x = Rectangle("x", "arena", 0, ROW, 0, 1)
    verify_run(run, [x, Rectangle("y", "second", 0, ROW, 0, 1)])
    with pytest.raises(UnheldRowsError):
        verify_run(run, [x])


def test_two_records_side_by_side_hold_a_row_and_a_gap_between_them_does_not():
    tensors = (PlacedRows("x", "arena", 2 * ROW, (0,)), PlacedRows("y", "arena", ROW, (64,)))
    turns = (TouchingTurn("f", 0, 0, (Rows("x", 0, 1),), (Rows("y", 0, 1),)),)
    run = Run(tensors, turns, ("x",), ("y",))
    y = Rectangle("y", "arena", 64, ROW, 0, 1)
    low = Rectangle("low", "arena", 0, ROW, 0, 1)
    verify_run(run, [low, Rectangle("high", "arena", ROW, ROW, 0, 1), y])
    with pytest.raises(UnheldRowsError):
        verify_run(run, [low, Rectangle("high", "arena", ROW + 1, ROW, 0, 1), y])

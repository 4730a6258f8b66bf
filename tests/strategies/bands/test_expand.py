"""Regions as ordinary steps: the pieces into which a tensor falls."""

from arenite.planner.programs.program import Program
from arenite.planner.programs.row_steps import RowReads, RowStep
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind
from arenite.strategies.bands.expand import BandedRegion, _overlapping, expand
from arenite.strategies.bands.regions import Surroundings, Turn
from support.tiny_graphs import step

SHAPE = (1, 3, 2, 1)
EACH_ITS_OWN = ((0, 1, 2), (1, 2, 3))
WITH_THE_NEXT = ((0, 1, 2), (2, 3, 3))


def expanded():
    tensors = [
        Tensor("x", DType.UINT8, SHAPE, TensorKind.INPUT),
        Tensor("a", DType.UINT8, SHAPE),
        Tensor("y", DType.UINT8, SHAPE, TensorKind.OUTPUT),
    ]
    steps = [step("f", "Relu", ("x",), ("a",)), step("g", "Relu", ("a",), ("y",))]
    program = Program.of("two", tensors, steps, ["x"], ["y"])
    reads = (RowReads(0, "x", *EACH_ITS_OWN), RowReads(0, "a", *WITH_THE_NEXT))
    row_steps = tuple(
        RowStep(each, program.tensors[each.outputs[0]], 3, 0, (read,), (), 0, 0)
        for each, read in zip(program.steps, reads, strict=True)
    )
    turns = (Turn(0, 0, 2), Turn(1, 0, 1), Turn(0, 2, 1), Turn(1, 1, 2))
    surroundings = Surroundings(frozenset(), frozenset({"y"}), 6)
    return expand(program, [BandedRegion(0, row_steps, turns, surroundings)])


def test_each_turn_is_a_step():
    found = expanded()
    assert [each.name for each in found.steps] == [
        "f/rows 0 to 2", "g/rows 0", "f/rows 2", "g/rows 1 to 3",
    ]  # fmt: skip


def test_rows_that_are_made_or_die_apart_are_tensors_of_their_own():
    found = expanded()
    assert found.steps[0].outputs == ("a/rows 0", "a/rows 1")
    assert found.steps[1].inputs == ("a/rows 0", "a/rows 1")
    assert found.steps[3].inputs == ("a/rows 1", "a/rows 2")
    assert "a" not in found.tensors


def test_rows_of_what_is_kept_lie_in_it():
    found = expanded()
    assert found.steps[3].outputs == ("y/rows 1 to 3",)
    assert found.tensors["y/rows 1 to 3"].alias == Alias("y", 2)
    assert found.tensors["y/rows 1 to 3"].shape == (1, 2, 2, 1)


def test_what_is_not_cut_is_read_whole():
    assert [each.inputs for each in expanded().steps[::2]] == [("x",), ("x",)]


def test_pieces_of_a_tall_tensor_are_not_searched_one_by_one():
    asked = []

    class Piece:
        def __init__(self, first):
            self._first = first
            self.stop = first + 1

        @property
        def first(self):
            asked.append(self._first)
            return self._first

    pieces = [Piece(row) for row in range(4096)]
    found = _overlapping(pieces, 100, 102)
    assert [each.stop for each in found] == [101, 102]
    assert len(asked) < 20

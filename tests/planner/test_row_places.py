"""Where rows lie at each size of a range: all of a tensor move as one, or none do."""

from dataclasses import replace

import pytest

from arenite.planner.errors import SizeError
from arenite.planner.operators import Band, Pieces
from arenite.planner.programs.program import Program, Step
from arenite.planner.programs.row_places import RowPlaces
from arenite.planner.rewrites.anchoring import anchor
from arenite.planner.sizes import Dimension
from arenite.planner.tensors import Alias, DType, Tensor, TensorKind, row_bytes
from support.tiny_graphs import operator, step

N = Dimension("n", 1, 8)
ROWS = range(4)
SHAPE = (1, len(ROWS), N.size, 2)


def image(name, kind=TensorKind.ACTIVATION):
    return Tensor(name, DType.FLOAT32, SHAPE, kind)


def pieces(of, alias):
    """Return the rows of an image, each where `alias` says."""
    return [
        replace(image(f"{of}{row}"), shape=(1, 1, *SHAPE[2:]), alias=alias(row)) for row in ROWS
    ]


def inside(name):
    return lambda row: Alias(name, row * row_bytes(image(name)))


def bands(name, reads, writes):
    return [
        Step(
            f"{name}{row}",
            Band(
                operator("Relu"), name, row, 1, (Pieces(reads, SHAPE, (row,)),),
                (Pieces(writes, SHAPE, (row,)),), (0,),
            ),
            (f"{reads}{row}",),
            (f"{writes}{row}",),
        )
        for row in ROWS
    ]  # fmt: skip


def rows_over(replaced, *, is_whole=True):
    """Return x -> v -> w -> y, of which some rows of w replace those of v."""
    tensors = [
        image("x", TensorKind.INPUT), image("v"), image("y", TensorKind.OUTPUT),
        *pieces("x", inside("x")), *pieces("v", inside("v")), *pieces("y", inside("y")),
        *pieces("w", lambda row: Alias(f"v{row}") if row in replaced else None),
    ]  # fmt: skip
    makes = [step("make", "Conv", ("x",), ("v",))] if is_whole else bands("make", "x", "v")
    steps = [*makes, *bands("over", "v", "w"), *bands("last", "w", "y")]
    return replace(Program.of("rows", tensors, steps, ["x"], ["y"]), dimensions=(N,))


def test_rows_over_those_of_a_tensor_that_is_made_whole_move_with_it():
    places = RowPlaces(rows_over(ROWS))
    assert places.common_holder(places.of("v")) == places.common_holder(places.of("w")) == "v"
    assert not any(map(places.keeps, ("v", "v2", "w0", "w3")))


def test_rows_of_tensors_that_are_taken_by_rows_alone_keep_their_first_bytes():
    places = RowPlaces(rows_over(ROWS, is_whole=False))
    assert places.common_holder(places.of("w")) is None
    assert all(map(places.keeps, ("v", "v2", "w0", "w3")))


def test_rows_of_which_others_do_not_move_get_storages_of_their_own():
    program = rows_over({0, 2})
    places = RowPlaces(program)
    with pytest.raises(SizeError, match="rows of 'w' would lie in more than one way"):
        places.common_holder(places.of("w"))
    found = anchor(program)
    assert [found.tensors[f"w{row}"].alias for row in ROWS] == [None] * 4
    places = RowPlaces(found)
    assert places.common_holder(places.of("w")) is None
    assert places.common_holder(places.of("v")) == "v"


def test_rows_that_begin_and_end_alike_at_every_size_replace_others_as_they_may():
    program = rows_over({0, 2})
    fixed = {}
    for name, each in program.tensors.items():
        alias = each.alias and Alias(each.alias.tensor, int(each.alias.offset))
        fixed[name] = replace(each, shape=(*each.shape[:2], 8, 2), alias=alias)
    program = replace(program, tensors=fixed)
    assert RowPlaces(program).parted() == program

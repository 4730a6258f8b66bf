"""What surrounds regions, worked out by hand."""

from arenite.planner.programs.program import Program
from arenite.planner.programs.row_steps import RowReads, RowStep
from arenite.planner.tensors import DType, Tensor, TensorKind
from arenite.strategies.bands.regions import Storage, Surroundings, storages, surroundings_from
from support.tiny_graphs import step

ROWS = (tuple(range(4)), tuple(range(1, 5)))


def program_of(*given):
    """Return a program of steps as (name of the result, names of the operands)."""
    names = dict.fromkeys(["x", *(name for name, _ in given)])
    kinds = {"x": TensorKind.INPUT, given[-1][0]: TensorKind.OUTPUT}
    tensors = [
        Tensor(name, DType.UINT8, (1, 4, 2, 1), kinds.get(name, TensorKind.ACTIVATION))
        for name in names
    ]
    steps = [step(f"make {made}", "Add", read, (made,)) for made, read in given]
    return Program.of("rows", tensors, steps, ["x"], [given[-1][0]])


def in_rows(program):
    return tuple(
        RowStep(
            each, program.tensors[each.outputs[0]], 4, 0,
            tuple(RowReads(position, name, *ROWS) for position, name in enumerate(each.inputs)),
            (), 0, 0,
        )
        for each in program.steps
    )  # fmt: skip


def found(program, start, steps=None):
    rows = in_rows(program) if steps is None else steps
    return list(surroundings_from(program, rows, storages(program), start))


SKIP = program_of(("a", ("x", "x")), ("b", ("a", "a")), ("c", ("b", "a")), ("y", ("c", "c")))


def test_a_storage_lives_from_its_maker_to_its_last_reader():
    lives = storages(SKIP)
    assert lives["a"] == Storage(8, 0, 3)
    assert lives["b"] == Storage(8, 1, 3)
    assert lives["x"].start == -1
    assert lives["y"].stop > len(SKIP.steps)


def test_what_is_read_once_more_after_a_region_is_carried():
    assert found(SKIP, 1)[0] == Surroundings(frozenset(), frozenset({"b"}), 8)


def test_what_dies_in_a_region_is_consumed():
    assert found(SKIP, 1)[1] == Surroundings(frozenset({"a"}), frozenset({"c"}), 0)


def test_the_last_region_keeps_the_output():
    assert found(SKIP, 1)[2].kept == {"y"}


def test_a_step_that_cannot_run_by_rows_ends_them():
    steps = (*in_rows(SKIP)[:2], None, in_rows(SKIP)[3])
    assert len(found(SKIP, 0, steps)) == 2
    assert found(SKIP, 2, steps) == []


def test_what_is_read_whole_of_a_region_ends_it():
    whole = in_rows(SKIP)
    last = RowStep(whole[2].step, whole[2].result, 4, 0, whole[2].reads[1:], (), 0, 0)
    steps = (*whole[:2], last, whole[3])
    assert len(found(SKIP, 0, steps)) == 2  # b is made in rows, and c needs all of it


def test_what_is_read_whole_is_carried_to_the_end_of_the_region():
    whole = in_rows(SKIP)
    last = RowStep(whole[2].step, whole[2].result, 4, 0, whole[2].reads[1:], (), 0, 0)
    assert found(SKIP, 2, (*whole[:2], last, whole[3]))[0] == Surroundings(
        frozenset({"a"}), frozenset({"c"}), 8
    )


def test_what_the_caller_holds_takes_no_bytes():
    lives = storages(SKIP, ("x", "y"))
    assert lives["a"] == storages(SKIP)["a"]
    assert (lives["x"].size, lives["y"].size) == (0, 0)
    (first, *_) = surroundings_from(SKIP, in_rows(SKIP), lives, 0)
    assert first == Surroundings(frozenset(), frozenset({"a"}), 0)

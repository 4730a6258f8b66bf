"""Program files that lie about rows: where they are, which of them run, and when."""

import random

import numpy as np
import pytest

from arenite.runtime import ProgramError
from support.banded_programs import Network, Sliding, file_of_root, in_bands
from support.edited_programs import load
from support.one_step import Given, constant, one_step

SAME = Sliding((3, 3), padding=(1, 1, 1, 1))


def chain():
    """Two convolutions, the second with what the first reads added, and what runs."""
    network = Network((6, 5, 4))
    between = network.conv(4, SAME)
    network.conv(4, SAME, addend=between)
    return network, in_bands(network, [2])


def edited(edit):
    """Return the bytes of a banded program after an edit of its JSON."""
    network, turns = chain()
    root, constants = network.root(turns, scatter=random.Random(0))
    edit(root)
    return file_of_root(root, constants)


def tensor(root, name):
    return next(each for each in root["tensors"] if each["name"] == name)


def between(root):
    """The tensor that lies row by row."""
    return next(each for each in root["tensors"] if "rows" in each)


def row_record(root, row):
    """The record of a row of it."""
    name = f"{between(root)['name']}[{row}]"
    return next(each for each in root["records"] if each["name"] == name)


def at(index, value):
    """Return an edit of a row's offset."""
    return lambda root: between(root)["rows"].__setitem__(index, value)


def turn(index, **changes):
    """Return an edit of a turn."""
    return lambda root: root["turns"][index].update(changes)


def halved(root):
    """Let the last turn be of another step of the same name."""
    last = root["turns"][-1]
    root["steps"].append(dict(root["steps"][last["step"]]))
    last["step"] = len(root["steps"]) - 1


def shapes(shape):
    return lambda root: between(root).update(shape=shape)


def short_life(root):
    """Let a row die before the last turn that reads it."""
    row_record(root, 2)["end"] -= 1


def late_life(root):
    """Let a row begin to live after it is made."""
    row_record(root, 2)["start"] += 1


def same_bytes(root):
    """Let a row lie where the next one does while both are read."""
    between(root)["rows"][1] = between(root)["rows"][2]
    row_record(root, 1)["offset"] = row_record(root, 2)["offset"]


def rows_of_port(root):
    row = tensor(root, "t0")
    row["rows"] = [row["offset"] + 80 * i for i in range(6)]
    row["offset"] = 0


def rows_of_constant(root):
    filter_ = root["tensors"][root["steps"][0]["inputs"][1]]
    filter_["rows"] = [0]


def rows_of_scratch(root):
    root["steps"][0]["scratch"] = len(root["tensors"])
    root["tensors"].append({"name": "w", "type": "uint8", "shape": [1, 1, 8], "rows": [0]})


def rows_of_state(root):
    root["states"] = [{"tensor": root["tensors"].index(between(root))}]


def rows_of_filter(root):
    """Let the filter of the first step be in memory, row by row."""
    root["steps"][0]["inputs"][1] = len(root["tensors"])
    x = tensor(root, "t0")
    entry = {"name": "f", "type": "float32", "shape": [1, 3, 3, 4, 16]}
    root["tensors"].append(entry | {"rows": [x["offset"]] * 3})
    root["memories"][0]["size"] += 1000
    size = root["memories"][0]["size"]
    root["records"] = [{"name": "all", "offset": 0, "size": size, "end": len(root["turns"])}]


EDITS = {
    # Where rows lie.
    "a row behind the memory": (at(0, 2**40), "row 0, lies at bytes 1099511627776 on, outside"),
    "a row whose end overflows": (at(1, 2**64 - 4), "row 1, lies at bytes 18446744073709551612"),
    "a row between elements": (at(2, 6), "row 2, lies at byte 6, between two of its elements"),
    "a row too few": (lambda r: between(r)["rows"].pop(), "has offsets of 5 rows, its shape"),
    "a row too many": (lambda r: between(r)["rows"].append(0), "has offsets of 7 rows"),
    "rows of a batch": (shapes([6, 6, 5, 4]), "has offsets of 6 rows"),
    "rows of one axis": (shapes([6]), "has offsets of 6 rows"),
    "rows and an offset": (lambda r: between(r).update(offset=4), "both rows and an offset"),
    "rows of a constant": (rows_of_constant, "is a constant that lies row by row"),
    "rows of an input": (rows_of_port, "input 'x' lies row by row"),
    "rows of working memory": (rows_of_scratch, "its working memory lies row by row"),
    "rows of a state": (rows_of_state, "lies row by row"),
    "rows of a filter": (rows_of_filter,
        "an input is stored row by row, but its kernel reads it as a whole"),
    # What runs.
    "a step that is not there": (turn(0, step=2), "turn 0 names step 2 of 2"),
    "a row that is not there": (turn(0, first=6), "runs rows 6 to 7 of 6 at turn 0"),
    "rows beyond the last": (turn(0, count=2**32 - 1), "runs rows 0 to 4294967295 of 6"),
    "rows whose end overflows": (turn(0, first=2**32 - 1, count=2), "runs rows 4294967295 to"),
    "a row and no count": (turn(1, count=0), "runs no rows from row 1 on"),
    "a row that is never made": (lambda r: r["turns"].pop(), "'s1' has no turn for row 4"),
    "a row that only a step of another name makes": (
        lambda r: (halved(r), r["steps"][-1].update(name="s2")), "'s1' has no turn for row 4"),
    "a step that never runs": (
        lambda r: [each.update(step=0) for each in r["turns"]], "'s1' has no turn"),
    # When rows are live.
    "a row that is dead when it is read": (short_life, "lies in no record that is live at turn"),
    "a row that is dead when it is made": (late_life, "lies in no record that is live at turn"),
    "rows that share bytes": (
        same_bytes, "shares bytes with another at turn"),
    "a record that outlives the turns": (
        lambda r: row_record(r, 1).update(end=99), r"lives at turns \d to 99 of"),
}  # fmt: skip


@pytest.mark.parametrize("lie", EDITS)
def test_a_lie_about_rows_is_refused_in_a_sentence(lie):
    edit, reason = EDITS[lie]
    network, turns = chain()
    root, constants = network.root(turns, scatter=random.Random(0))
    # Records fewer than turns: a pop of the last turn must not leave one behind it.
    edit(root)
    for record in root["records"]:
        if record["end"] == len(turns) and len(root["turns"]) < len(turns):
            record["end"] = len(root["turns"])
    with pytest.raises(ProgramError, match=reason):
        load(file_of_root(root, constants))


def test_what_was_edited_loads():
    load(edited(lambda root: None))


def test_steps_of_one_name_make_the_rows_together():
    load(edited(halved))


def in_rows(kind, kernel, source, result, turns, scratch=None):
    """Return a program of one step that runs by rows."""
    data = b"".join(one_step(kind, kernel, [source], [result], scratch=scratch, turns=turns))
    load(data)


def test_a_step_that_makes_all_at_once_does_not_run_by_rows():
    image = Given((1, 4, 5, 2))
    with pytest.raises(
        ProgramError, match="it runs by rows, but its kernel makes the whole output"
    ):
        in_rows("CumulativeSum", {"axis": 2}, image, image, [(0, 0, 4)])


@pytest.mark.parametrize(
    ("shape", "reason"),
    [((4, 5), "runs by rows, which tensor 'o0' does not have"),
     ((2, 5, 2), "runs by rows, which tensor 'o0' does not have"),
     ((1, 0, 2), "runs by rows, which tensor 'o0' does not have")],
)  # fmt: skip
def test_what_has_no_rows_does_not_run_by_rows(shape, reason):
    with pytest.raises(ProgramError, match=reason):
        in_rows("Unary", {"function": "negate"}, Given(shape), Given(shape), [(0, 0, 1)])


def test_rows_without_number_take_no_memory_to_check():
    image = Given((1, 2**40, 2))
    with pytest.raises(ProgramError, match="has no turn for row 1"):
        in_rows("Unary", {"function": "negate"}, image, image, [(0, 0, 1), (0, 2, 1)])


SUMS = {
    "out of order": ([(0, 0, 2), (0, 3, 1), (0, 2, 1)], "takes row 3 at turn 1, where row 2"),
    "one twice": ([(0, 0, 2), (0, 0, 4)], "takes row 0 at turn 1, where row 2 is next"),
    "not to the end": ([(0, 0, 2), (0, 2, 1)], "has no turn for row 3"),
    "beyond the end": ([(0, 0, 5)], "runs rows 0 to 5 of 4"),
}


@pytest.mark.parametrize("lie", SUMS)
@pytest.mark.parametrize("kind", ["Reduce", "Pool2D"])
def test_rows_are_taken_into_sums_one_after_another(kind, lie):
    turns, reason = SUMS[lie]
    source, result = Given((1, 4, 5, 2)), Given((1, 1, 1, 2))
    kernels = {
        "Reduce": {"function": "mean", "axes": [1, 2]},
        "Pool2D": {"kind": "average", "window": [4, 5]},
    }
    with pytest.raises(ProgramError, match=reason):
        in_rows(kind, kernels[kind], source, result, turns, scratch=64)


def test_sums_live_from_the_first_row_to_the_last():
    source, result = Given((1, 4, 5, 2)), Given((1, 1, 1, 2))
    turns = [(0, 0, 2), (0, 2, 2)]
    kernel = {"function": "mean", "axes": [1, 2]}

    def split(root):
        record = next(each for each in root["records"] if each["name"] == "scratch")
        root["records"].append(record | {"name": "again", "start": 1, "end": 2})
        record["end"] = 1

    data = b"".join(
        one_step("Reduce", kernel, [source], [result], scratch=64, turns=turns, edit=split)
    )
    with pytest.raises(ProgramError, match="working memory is not live from row 0 on at turn 1"):
        load(data)


def test_a_product_by_rows_has_those_of_its_source():
    packed = constant(np.zeros((1, 6, 16), np.float32))
    pieces = one_step(
        "FullyConnected", {}, [Given((1, 4, 6)), packed], [Given((1, 2, 2, 3))],
        turns=[(0, 0, 2)],
    )  # fmt: skip
    with pytest.raises(ProgramError, match="its input and output differ in rows"):
        load(b"".join(pieces))

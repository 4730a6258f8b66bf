"""What a program file says that its turns touch, checked by code that makes none."""

import math
import random
import struct

import pytest

import arenite
from arenite.planner.errors import InvalidPlanError
from arenite.planner.programs.run_verification import (
    OverwrittenRowsError,
    UnheldRowsError,
    UnwrittenRowsError,
    verify_run,
)
from arenite.runtime import ProgramError, Session
from arenite.runtime.program import rectangles_of, root_of, run_of
from support.banded_programs import Network, Sliding, in_bands
from support.forked import in_child
from support.one_step import Given
from support.row_programs import program_by_rows
from support.tiny_onnx import parse, save, with_random_weights

SAME = Sliding((3, 3), padding=(1, 1, 1, 1))


def chain(dtype="float32"):
    network = Network((13, 5, 3), dtype)
    network.conv(8, SAME)
    added = network.depthwise(Sliding((3, 3), strides=(2, 2), padding=(0, 1, 1, 0)))
    network.conv(8, SAME, addend=added)
    network.conv(5, Sliding((3, 2), dilations=(2, 1), padding=(3, 0, 1, 1)))
    return network


def program_of(data):
    (size,) = struct.unpack_from("<Q", data, 16)
    return data[32 : 32 + size]


def rooted(data):
    return root_of(program_of(data))


def banded(dtype="float32", sizes=(1,)):
    network = chain(dtype)
    return rooted(network.file(in_bands(network, sizes), scatter=random.Random(3)))


def check(root):
    verify_run(run_of(root), rectangles_of(root))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("sizes", [(1,), (2, 1, 4), (99,)])
def test_rows_that_lie_anywhere_are_found(dtype, sizes):
    check(banded(dtype, sizes))


def without_operator(program):
    """Return a program whose first step says nothing of which operator it is."""
    data = bytearray(program)

    def field(table, number):
        (back,) = struct.unpack_from("<i", data, table)
        return table - back + 4 + 2 * number

    def followed(place):
        return place + struct.unpack_from("<I", data, place)[0]

    def member(table, number):
        return table + struct.unpack_from("<H", data, field(table, number))[0]

    steps = followed(member(followed(0), 6))
    struct.pack_into("<H", data, field(followed(steps + 4), 1), 0)
    return bytes(data)


def test_a_damaged_program_is_refused_as_one():
    sound = program_of(chain().file())
    not_utf8 = sound.replace(b"s0\0", b"s\xff\0")
    assert not_utf8 != sound
    for damaged in (b"", sound[: len(sound) // 2], not_utf8):
        with pytest.raises(ProgramError):
            root_of(damaged)


def test_a_step_without_an_operator_is_damage_and_ends_no_process():
    damaged = without_operator(program_of(chain().file()))

    def refused():
        with pytest.raises(ProgramError, match="a step has no operator"):
            root_of(damaged)

    assert in_child(refused) == 0


def test_a_program_that_runs_whole_is_a_run_too():
    root = rooted(chain().file())
    assert [turn.rows for turn in run_of(root).turns] == [0, 0, 0, 0]
    check(root)


@pytest.mark.parametrize("sizes", [(1,), (3,)])
def test_the_rows_a_turn_reads_are_those_under_its_windows_and_no_others(sizes):
    """Every record ends with its last reader, so that one row more or fewer is noticed."""
    network = chain()
    turns = in_bands(network, sizes)
    run = run_of(rooted(network.file(turns, scatter=random.Random(0))))
    for stated, (step, first, count) in zip(run.turns, turns, strict=True):
        windows = network.layers[step].windows
        under = [
            window.under(first, count, network.extent(source)[0]) for source, window in windows
        ]
        found = [range(rows.first, rows.stop) for rows in stated.reads]
        assert found == [rows for rows in under if rows]


def of_row(root, tensor, row):
    return next(each for each in root["records"] if each["name"] == f"{tensor}[{row}]")


def free_early(root):
    of_row(root, "t3", 2)["end"] -= 1


def leave_turn_out(root):
    turns = root["turns"]
    number = next(i for i, each in enumerate(turns) if each["step"] == 0)
    turns[number]["step"], turns[number]["first"], turns[number]["count"] = 0, 5, 1
    of_row(root, "t3", 5)["start"] = number


def swap_turns(root):
    turns = root["turns"]
    number = next(i for i, each in enumerate(turns) if each["step"] == 1)
    turns[number - 1], turns[number] = turns[number], turns[number - 1]


def shrink_ring(root):
    """Let two rows that are live together have the same bytes, of one record for both."""
    index = next(i for i, each in enumerate(root["tensors"]) if each["name"] == "t3")
    rows = root["tensors"][index]["rows"]
    first, second = of_row(root, "t3", 2), of_row(root, "t3", 3)
    first |= {
        "start": min(first["start"], second["start"]),
        "end": max(first["end"], second["end"]),
    }
    root["records"].remove(second)
    rows[3] = rows[2]


@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        (free_early, UnheldRowsError),
        (leave_turn_out, UnwrittenRowsError),
        (swap_turns, (UnwrittenRowsError, UnheldRowsError)),
        (shrink_ring, OverwrittenRowsError),
    ],
)
def test_each_mutation_is_noticed(mutation, error):
    root = banded()
    mutation(root)
    with pytest.raises(error, match=r"turn \d+, 's\d', (reads|writes) row \d+ of 't\d'"):
        check(root)


def test_every_record_is_needed_to_its_last_turn():
    root = banded()
    results = [each for each in root["records"] if "[" in each["name"]]
    assert results
    for record in results:
        record["end"] -= 1
        if record["end"] > record["start"]:
            with pytest.raises(InvalidPlanError):
                check(root)
        record["end"] += 1


JOINED = """(float[1,4,8] x) => (y, z) {
    a = Tanh(x) b = Sigmoid(x) y = Concat<axis=1>(a, b) z = ReduceMean<axes=[2]>(a) }"""


def test_what_lies_in_its_place_is_not_written_again_where_it_is_copied(tmp_path):
    model, program = save(tmp_path, with_random_weights(parse(JOINED))), tmp_path / "made.arena"
    arenite.build(model, program)
    with Session(program) as session:
        root = root_of(session.flatbuffer())
    check(root)
    tensors = {each["name"]: each for each in root["tensors"]}
    assert tensors["y"]["offset"] == tensors["a"]["offset"]
    copy = next(each for each in root["steps"] if each["kernel_type"] == "Copy")
    copy["kernel"]["moves"][1]["output_start"] = 24  # over the end of the other part
    with pytest.raises(OverwrittenRowsError, match=r"reads 'a', where 'y \(part 0\)' was written"):
        check(root)


ROWS = 6
IMAGE = Given((1, ROWS, 4, 3))
BY_ROWS = {
    "Pool2D": (
        {"kind": "maximum", "window": [3, 1], "strides": [2, 1], "padding": [1, 0, 0, 0]},
        [IMAGE], Given((1, 3, 4, 3)), [[0, 2], [1, 4], [3, 6]],
    ),
    "Unary": ({"function": "absolute"}, [IMAGE], IMAGE, [[row, row + 1] for row in range(ROWS)]),
    "Softmax": ({}, [IMAGE], IMAGE, [[row, row + 1] for row in range(ROWS)]),
    "Resize2D": (
        {"row_low": [0, 2, 5], "column_low": [0, 1, 2, 3], "row_high": [1, 3, 5],
         "row_weight": [0.5] * 3, "column_high": [0, 1, 2, 3], "column_weight": [0.0] * 4},
        [IMAGE], Given((1, 3, 4, 3)), [[0, 2], [2, 4], [5, 6]],
    ),
    "Copy": (
        {"moves": [{"input": 0, "output": 0, "shape": [4, 12], "input_start": 12,
                    "input_strides": [12, 1], "output_start": 0, "output_strides": [12, 1]}]},
        [IMAGE], Given((1, 4, 4, 3)), [[1, 2], [2, 3], [3, 4], [4, 5]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BY_ROWS)
def test_what_an_operator_reads_for_each_row(kind):
    kernel, inputs, output, reads = BY_ROWS[kind]
    bands = [(row, 1) for row in range(output.shape[1])]
    data = program_by_rows(kind, kernel, inputs, output, bands=bands, draw=random.Random(1))
    root = rooted(data)
    by_rows = [turn for turn in run_of(root).turns if turn.rows]
    assert [[turn.reads[0].first, turn.reads[0].stop] for turn in by_rows] == reads
    check(root)


def test_numbers_that_are_not_finite_are_read():
    root = rooted(chain().file())
    assert root["steps"][0]["kernel"]["max"] == math.inf
    assert root["steps"][0]["kernel"]["min"] == -math.inf

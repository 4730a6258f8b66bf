"""Loops of turns and packed records that lead astray: each is refused in a sentence."""

import random
import time

import pytest

from arenite.runtime import ProgramError, Session
from arenite.runtime.program import file as program_file
from arenite.runtime.program.packing import packed
from support.banded_programs import Network, Sliding, in_bands

SAME = Sliding((3, 3), padding=(1, 1, 1, 1))
MOST = (1 << 32) - 1


@pytest.fixture
def refusal(monkeypatch):
    """Return what the core says of a program whose packed fields were edited."""
    network = Network((24, 5, 3))
    network.conv(8, SAME)
    network.conv(4, SAME)

    def packed_and_edited(edit):
        def pack(root):
            stored = packed(root)
            edit(stored)
            return stored

        return pack

    def refusal(edit):
        monkeypatch.setattr(program_file, "packed", packed_and_edited(edit))
        data = network.file(in_bands(network, (1,)), scatter=random.Random(2))
        began = time.process_time()
        with pytest.raises(ProgramError) as caught:
            Session.of_pieces([data], "edited")
        assert time.process_time() - began < 5
        return caught.value.reason

    return refusal


def test_what_is_not_edited_runs(refusal):
    with pytest.raises(pytest.fail.Exception):
        refusal(lambda stored: None)


def loop(index, **fields):
    return lambda stored: stored["loops"][index].update(fields)


def turn(index, **fields):
    return lambda stored: stored["turns"][index].update(fields)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (loop(0, turns=0), "loop 0 has no turns"),
        (loop(-1, times=0), "has no turns"),
        (loop(0, turns=MOST), "loop 0 has more turns than there are"),
        (loop(-1, times=MOST), "makes more than 1048576 turns of the program"),
        (lambda stored: stored["loops"].append({"turns": 1, "times": 1}), "has more turns than"),
        (
            lambda stored: stored["turns"].append(
                {"step": 0, "first": 0, "count": 0, "stride": 0}
            ),
            "the loops have",
        ),
        (lambda stored: stored.pop("turns"), "loop 0 has more turns than there are"),
        (lambda stored: stored.pop("loops"), "the loops have 0 of"),
    ],
)
def test_loops_have_the_turns_that_there_are(refusal, edit, words):
    assert words in refusal(edit)


def longest(stored):
    """Return the loop that comes round most often, and its first turn."""
    place = 0
    found = []
    for each in stored["loops"]:
        found.append((each["times"], each, stored["turns"][place]))
        place += each["turns"]
    return max(found, key=lambda each: each[0])[1:]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"stride": -(1 << 31)}, "reaches row -"),
        ({"stride": (1 << 31) - 1}, "reaches row "),
        ({"first": MOST}, "reaches row 42949"),
        ({"stride": 2}, "runs rows "),
        ({"stride": 0}, "has no turn for row "),
        ({"step": 7}, "names step 7 of 2"),
    ],
)
def test_rows_of_loops_are_rows_that_there_are(refusal, fields, words):
    said = refusal(lambda stored: longest(stored)[1].update(fields))
    # A row that is made at another turn than its own lies in no record there.
    assert words in said or "lies in no record that is live" in said


def test_a_loop_that_runs_once_more_is_refused(refusal):
    def edit(stored):
        longest(stored)[0]["times"] += 1

    assert refusal(edit)


def replaced(data):
    return lambda stored: stored.update(records=data)


def cut(stored):
    stored["records"] = stored["records"][:-1]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (cut, "a number is truncated"),
        (replaced([0x80] * 12), "a number is truncated"),
        (replaced([0xFF] * 9 + [0x02]), "a number is truncated"),
        (replaced([99, 0, 2, 2, 0]), "a record is of owner 99 of"),
        (replaced([0, *[0xFF] * 4, 0x1F, 2, 2, 0]), "a lifetime is out of range"),
        (replaced([0, *[0xFF] * 9, 0x01, 2, 2, 0]), "a lifetime is out of range"),
        (replaced([0, 0, 1, 2, 0]), "a lifetime is out of range"),
        (replaced([0, 0, 0, 2, 0]), "lives at turns 0 to 0"),
        (replaced([0, 0, 2, *[0xFF] * 9, 0x01, 0]), "lies outside the"),
        (replaced([0, 0, 2, 2, *[0xFF] * 9, 0x01]), "lies outside the"),
        (replaced([]), "lies in no record that is live"),
        (lambda stored: stored["owners"].clear(), "a record is of owner 0 of 0"),
        (lambda stored: stored["owners"][0].update(memory=9), "lies in memory 9 of 1"),
    ],
)
def test_records_that_are_damaged_are_refused(refusal, edit, words):
    assert words in refusal(edit)

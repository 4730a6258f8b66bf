"""Turns as loops, and records packed: what is written out again is the same."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arenite.runtime.program.packing import FileTurn, Loop, in_loops, packed, unpacked, written_out
from support.banded_programs import Network, Sliding, in_bands

SAME = Sliding((3, 3), padding=(1, 1, 1, 1))


def again(loops):
    return [turn for loop in loops for turn in written_out(loop)]


def test_turns_that_come_again_are_one_loop():
    turns = [FileTurn(step, row + step, 1) for row in range(9) for step in (0, 1)]
    assert in_loops(turns) == (Loop((FileTurn(0, 0, 1, 1), FileTurn(1, 1, 1, 1)), 9),)


def test_rows_may_be_made_from_the_last_to_the_first():
    turns = [FileTurn(0, row, 2) for row in range(10, -2, -2)]
    assert in_loops(turns) == (Loop((FileTurn(0, 10, 2, -2),), 6),)


def test_what_does_not_come_again_runs_once_before_and_behind():
    turns = [
        FileTurn(7, 0, 0),
        *(FileTurn(0, row, 1) for row in range(5)),
        FileTurn(8, 0, 0),
        FileTurn(9, 0, 0),
    ]
    assert in_loops(turns) == (
        Loop((FileTurn(7, 0, 0),), 1),
        Loop((FileTurn(0, 0, 1, 1),), 5),
        Loop((FileTurn(8, 0, 0), FileTurn(9, 0, 0)), 1),
    )


def test_a_pair_that_saves_nothing_is_no_loop():
    assert in_loops([FileTurn(0, 0, 1), FileTurn(0, 1, 1)]) == (
        Loop((FileTurn(0, 0, 1), FileTurn(0, 1, 1)), 1),
    )


def test_rows_too_far_apart_for_a_stride_are_no_loop():
    far = [FileTurn(0, 0, 1), FileTurn(0, (1 << 32) - 1, 1), FileTurn(0, 0, 1)]
    assert in_loops(far) == (Loop(tuple(far), 1),)


TURNS = st.lists(
    st.builds(FileTurn, st.integers(0, 2), st.integers(0, 3), st.integers(0, 2), st.just(0)),
    max_size=40,
)


@given(TURNS, TURNS, st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_loops_written_out_are_the_turns(before, body, times):
    moved = [turn._replace(first=turn.first + n) for n in range(times) for turn in body]
    turns = [*before, *moved, *before]
    loops = in_loops(turns)
    assert again(loops) == turns
    assert all(turn.stride == 0 for loop in loops if loop.times == 1 for turn in loop.turns)


def network():
    found = Network((64, 5, 3))
    found.conv(8, SAME)
    found.depthwise(Sliding((3, 3), strides=(2, 2), padding=(0, 1, 1, 0)))
    found.conv(8, SAME)
    return found


def root():
    layers = network()
    return layers.root(in_bands(layers, (1,)), scatter=random.Random(1))[0]


def test_a_steady_state_takes_few_turns_in_the_file():
    written = packed(root())
    assert len(root()["turns"]) > 100
    assert len(written["turns"]) < 20
    assert sum(loop["turns"] for loop in written["loops"]) == len(written["turns"])


def by_place(records):
    return sorted(records, key=lambda each: (each["start"], each["offset"], each["name"]))


def test_what_is_packed_is_the_same_unpacked():
    stated, found = root(), unpacked(packed(root()))
    assert found["turns"] == stated["turns"]
    assert by_place(found["records"]) == by_place(stated["records"])
    assert {key: found[key] for key in stated if key not in ("turns", "records")} == {
        key: stated[key] for key in stated if key not in ("turns", "records")
    }


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(["a", "b", "c"]),
                "memory": st.integers(0, 255),
                "offset": st.integers(0, (1 << 64) - 1),
                "size": st.integers(0, (1 << 64) - 1),
                "start": st.integers(0, (1 << 32) - 1),
                "end": st.integers(0, (1 << 32) - 1),
            }
        )
    )
)
@settings(max_examples=60, deadline=None)
def test_any_records_are_packed_without_loss(records):
    found = unpacked(packed({"records": records}))["records"]
    assert found == sorted(records, key=lambda each: each["start"])


def test_records_of_a_region_take_a_few_bytes_each():
    written = packed(root())
    assert len(written["records"]) < 9 * len(root()["records"])


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"name": "a", "colour": 1}, "a record has an unknown field 'colour'"),
        ({"start": 0}, "a record has no name"),
        ({"name": "a", "offset": -1}, "offset of record 'a' is -1"),
        ({"name": "a", "end": 1 << 32}, "end of record 'a' is 4294967296"),
        ({"name": "a", "memory": 256}, "memory of record 'a' is 256"),
    ],
)
def test_what_the_file_has_no_room_for_is_refused(entry, words):
    with pytest.raises(ValueError, match=words):
        packed({"records": [entry]})
    with pytest.raises(ValueError, match="a turn has an unknown field 'rows'"):
        packed({"turns": [{"step": 0, "rows": 1}]})

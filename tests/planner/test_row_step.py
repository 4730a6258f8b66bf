"""Which rows steps read, worked out by hand."""

from arenite.planner.programs.row_steps import RowReads

PADDED = RowReads(0, "x", (0, 0, 1, 2), (2, 3, 4, 4))
"""Four rows, each from the one above, itself, and the one below."""


def test_a_band_reads_from_its_first_row_to_its_last():
    assert PADDED.needed(0, 1) == (0, 2)
    assert PADDED.needed(1, 3) == (0, 4)


def test_a_row_is_needed_until_its_last_reader_is_made():
    assert [PADDED.still_needed(end) for end in range(5)] == [0, 0, 1, 2, 4]

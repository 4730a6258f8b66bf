import pytest
from hypothesis import given
from hypothesis import strategies as st

from arenite.planner.units import align_up, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("65536", 65_536), ("64KiB", 65_536), (" 64 kib ", 65_536), ("1.5MB", 1_500_000),
     ("2GiB", 2 << 30), ("7b", 7), ("1kB", 1_000), ("0.5KiB", 512), ("1.001kB", 1_001),
     ("10TB", 10**13), ("1TiB", 1 << 40), (f"{1 << 80}.0KiB", 1 << 90)],
)  # fmt: skip
def test_a_size_reads_as_exact_bytes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "-1", "1.5", "1e3", "64 KiBs", "0.3KiB", "1KB x"])
def test_what_is_not_a_whole_number_of_bytes_is_refused(text):
    with pytest.raises(ValueError, match=r"is not a (size|whole)"):
        parse_size(text)


def test_a_unit_of_two_readings_is_refused_with_both():
    with pytest.raises(ValueError, match="write 256KiB for powers of 1024 or 256KB"):
        parse_size("256k")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (55_296, "54 KiB"), (7_631_920, "7.278 MiB"),
     (5 << 40, "5120 GiB")],
)  # fmt: skip
def test_a_size_is_shown_in_the_largest_unit_that_fits(size, text):
    assert format_size(size) == text


@given(st.integers(0, 1 << 40), st.sampled_from([1, 2, 16, 64]))
def test_aligning_gives_the_least_multiple_that_is_not_below(value, alignment):
    aligned = align_up(value, alignment)
    assert aligned % alignment == 0
    assert value <= aligned < value + alignment

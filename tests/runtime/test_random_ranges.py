"""Random networks for ranges of sizes: every way of building them computes the same bits."""

import pytest

from support.range_fuzz import WAYS, check


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [3, 21])
def test_a_random_network_is_right_at_its_sizes(way, seed, tmp_path):
    assert check(seed, tmp_path, way).startswith(way)


@pytest.mark.parametrize(
    ("seed", "way"),
    [
        (811149, "in bands"),
        (910108, "quick"),
        (1129991, "in bands"),
        (3400026, "in bands"),
        (6101219, "in bands"),
        (6400012, "in bands"),
        (5200219, "whole"),
        (5200410, "whole"),
    ],
    ids=[
        "a cheap step behind another",
        "a part of 16-bit floats that is an output",
        "rows of a view of another shape",
        "rows made over those of a tensor that is made whole",
        "one row that every row of another size reads",
        "single elements that are reflected, far from the rows of a turn",
        "an input that is an output, and no step",
        "an image that is enlarged from most columns at the lowest sizes",
    ],
)
def test_a_network_that_was_refused_or_wrong_once_is_right(seed, way, tmp_path):
    assert check(seed, tmp_path, way).startswith(way)

"""Random networks for ranges of sizes: every way of building them computes the same bits."""

import pytest

from support.range_fuzz import WAYS, check


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", [3, 21])
def test_a_random_network_is_right_at_its_sizes(way, seed, tmp_path):
    assert check(seed, tmp_path, way).startswith(way)

"""Which weights stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from arenite.compression.pruning import mask_by_density, mask_by_deviation, masks_by_budget


@given(
    arrays.arrays(
        np.float32, arrays.array_shapes(max_dims=3, max_side=8), elements=st.integers(-3, 3)
    ),
    st.floats(0.01, 1),
)
def test_so_many_of_the_largest_stay_and_of_equal_ones_the_first(weights, density):
    mask = mask_by_density(weights, density)
    num_kept = max(1, round(density * weights.size))
    order = np.argsort(-np.abs(weights.reshape(-1)), kind="stable")
    assert mask.shape == weights.shape
    assert np.array_equal(np.sort(order[:num_kept]), np.flatnonzero(mask))


def test_weights_stay_beyond_so_many_deviations():
    weights = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    assert np.mean(mask_by_deviation(weights, 1)) == pytest.approx(0.317, abs=0.01)
    assert np.array_equal(mask_by_deviation(weights, 0), weights != 0)


def test_a_budget_has_one_threshold_for_all_layers():
    random = np.random.default_rng(1)
    layers = {
        "large": 10 * random.standard_normal((20, 30)).astype(np.float32),
        "small": random.standard_normal((40, 5)).astype(np.float32),
    }
    masks = masks_by_budget(layers, 0.3)
    assert sum(np.count_nonzero(mask) for mask in masks.values()) == round(0.3 * 800)
    assert {name: mask.shape for name, mask in masks.items()} == {
        name: weights.shape for name, weights in layers.items()
    }
    kept = min(np.abs(layers[name][masks[name]]).min(initial=np.inf) for name in layers)
    gone = max(np.abs(layers[name][~masks[name]]).max(initial=0) for name in layers)
    assert kept >= gone
    assert masks["large"].mean() > masks["small"].mean()
    assert masks_by_budget({}, 0.5) == {}


@pytest.mark.parametrize("density", [0, -0.1, 1.1, float("nan")])
def test_a_density_out_of_range_is_refused(density):
    with pytest.raises(ValueError, match="density"):
        mask_by_density(np.ones(3), density)


@pytest.mark.parametrize("multiple", [-1, float("nan")])
def test_a_multiple_below_0_is_refused(multiple):
    with pytest.raises(ValueError, match="must be at least 0"):
        mask_by_deviation(np.ones(3), multiple)

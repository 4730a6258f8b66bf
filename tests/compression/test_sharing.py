"""Weights that share the values of a codebook."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from arenite.compression.sharing import Start, bits_by_budget, share, squared_error


def least_squared_error(weights: np.ndarray, num_clusters: int) -> float:
    """Return the least sum of squared distances to so many means, by dynamic programming.

    Clusters of the optimum are runs of the sorted weights, so the last one begins somewhere and
    the rest is the optimum of what is before it.
    """
    ordered = np.sort(weights.astype(np.float64).reshape(-1))
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    squares = np.concatenate(([0.0], np.cumsum(ordered**2)))

    def error(begin: int, end: int) -> float:
        total = sums[end] - sums[begin]
        return max(0.0, float(squares[end] - squares[begin] - total * total / (end - begin)))

    count = ordered.size
    best = [0.0] + [float("inf")] * count
    for _ in range(num_clusters):
        best = [0.0] + [
            min(best[begin] + error(begin, end) for begin in range(end))
            for end in range(1, count + 1)
        ]
    return best[count]


WEIGHTS = arrays.arrays(
    np.float32, st.integers(1, 40), elements=st.floats(-8, 8, width=32, allow_subnormal=False)
)


@given(WEIGHTS, st.integers(1, 3), st.sampled_from(Start))
def test_k_means_never_beats_the_optimum_and_every_weight_takes_its_nearest_value(
    weights, bits, start
):
    shared = share(weights, bits, start=start)
    assert shared.codebook.size <= 2**bits
    distances = np.abs(weights[:, None].astype(np.float64) - shared.codebook[None, :])
    nearest = distances.min(axis=1)
    taken = np.abs(weights.astype(np.float64) - shared.restore())
    assert np.all(taken <= nearest * (1 + 1e-6) + 1e-6)
    least = least_squared_error(weights, 2**bits)
    assert squared_error(weights, shared.restore()) >= least * (1 - 1e-5) - 1e-6


def test_k_means_comes_close_to_the_optimum_on_weights_like_those_of_networks():
    ratios = []
    for seed in range(20):
        weights = np.random.default_rng(seed).standard_normal(120).astype(np.float32)
        ratios.append(
            squared_error(weights, share(weights, 3).restore()) / least_squared_error(weights, 8)
        )
    assert min(ratios) >= 1 - 1e-5
    assert np.median(ratios) < 1.25
    assert max(ratios) < 1.8


@pytest.mark.parametrize("start", Start)
def test_a_mean_is_that_of_its_weights(start):
    weights = np.random.default_rng(1).laplace(size=(60, 70)).astype(np.float32)
    shared = share(weights, 4, start=start)
    for index, value in enumerate(shared.codebook):
        members = weights[shared.indices == index]
        assert value == pytest.approx(members.mean(dtype=np.float64), rel=1e-3, abs=1e-4)


def test_weights_of_few_values_are_kept_as_they_are():
    weights = np.float32([3, -1, 3, 0.5, -1])
    shared = share(weights, 2)
    assert shared.restore().tobytes() == weights.tobytes()
    assert shared.codebook.tolist() == [-1, 0.5, 3]


def test_pruned_weights_take_the_first_value_and_no_other_does():
    weights = np.random.default_rng(2).standard_normal((30, 40)).astype(np.float32)
    mask = np.abs(weights) > 1
    shared = share(weights, 3, mask=mask)
    assert shared.codebook[0] == 0
    assert shared.codebook.size <= 8
    assert np.array_equal(shared.indices != 0, mask)
    assert np.array_equal(shared.restore() != 0, mask)


def test_a_mask_of_nothing_leaves_zeros():
    shared = share(np.ones(5, np.float32), 2, mask=np.zeros(5, bool))
    assert shared.restore().tolist() == [0] * 5


def test_half_codebooks_hold_what_16_bits_hold():
    weights = np.random.default_rng(3).standard_normal(2000).astype(np.float32) * 1e6
    codebook = share(weights, 4, half=True).codebook
    assert np.array_equal(codebook.astype(np.float16).astype(np.float32), codebook)


def test_forgy_depends_on_its_seed_alone():
    weights = np.random.default_rng(4).standard_normal(500).astype(np.float32)
    first, again, other = (
        share(weights, 4, start=Start.FORGY, seed=seed).codebook for seed in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("weights", [np.zeros(0, np.float32), np.zeros((3, 0), np.float32)])
def test_no_weights_are_no_values(weights):
    assert share(weights, 4).restore().shape == weights.shape


@pytest.mark.parametrize(
    ("weights", "bits", "mask"),
    [
        (np.ones(3, np.float32), 0, None),
        (np.ones(3, np.float32), 9, None),
        (np.float32([1, np.nan]), 4, None),
        (np.float32([1, np.inf]), 4, None),
        (np.ones(3, np.float32), 4, np.ones(4, bool)),
    ],
)
def test_what_cannot_be_shared_is_refused(weights, bits, mask):
    with pytest.raises(ValueError, match=r"bits|finite|mask"):
        share(weights, bits, mask=mask)


def test_bits_go_where_they_take_the_most_error():
    random = np.random.default_rng(5)
    layers = {
        "few values": np.repeat(np.float32([1, 2]), 500),
        "many values": random.standard_normal(1000).astype(np.float32),
    }
    chosen = bits_by_budget(layers, 4)
    assert chosen == {"few values": 1, "many values": 7}
    assert sum(bits * 1000 for bits in chosen.values()) <= 4 * 2000
    with pytest.raises(ValueError, match="must be 1 to 8"):
        bits_by_budget(layers, 9)

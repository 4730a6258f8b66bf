"""Reductions beside NumPy, over every choice of axes."""

import itertools

import numpy as np
import pytest

from arenite.runtime import Session
from support.one_step import Given, one_step

GENERATOR = np.random.default_rng(3)

FUNCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "maximum": np.max,
    "minimum": np.min,
    "product": np.prod,
    "l1": lambda x, axis: np.abs(x).sum(axis),
    "l2": lambda x, axis: np.sqrt((x * x).sum(axis)),
    "sum_square": lambda x, axis: (x * x).sum(axis),
    "log_sum": lambda x, axis: np.log(x.sum(axis)),
    "log_sum_exp": lambda x, axis: np.log(np.exp(x).sum(axis)),
}
SHAPES = [(5,), (3, 4), (2, 3, 4), (2, 1, 3, 1), (2, 3, 2, 3, 2), (1, 2, 1, 2, 1, 3, 1), (1, 1)]
INTEGERS = ["int32", "int64"]


def choices(shape):
    axes = range(len(shape))
    return itertools.chain.from_iterable(
        itertools.combinations(axes, count) for count in range(len(shape) + 1)
    )


def reduce(array, function, axes, *, in_place=False):
    """What the core makes of an array."""
    kept = tuple(n for axis, n in enumerate(array.shape) if axis not in axes)
    kind = array.dtype.name
    pieces = one_step(
        "Reduce", {"function": function, "axes": list(axes)}, [Given(array.shape, kind)],
        [Given(kept, kind, same_as=0 if in_place else None)],
    )  # fmt: skip
    with Session.of_pieces(pieces, function) as session:
        return session.run({"i0": array})["o0"]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_floats_are_reduced_over_any_axes(shape, function):
    array = GENERATOR.uniform(0.1, 2, shape).astype(np.float32)
    for axes in choices(shape):
        expected = FUNCTIONS[function](array, axes) if axes else FUNCTIONS[function](
            array[np.newaxis], 0
        )  # fmt: skip
        np.testing.assert_allclose(reduce(array, function, axes), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [31, 32, 33, 47, 48, 1000])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_long_runs_are_reduced_in_lanes(function, length):
    array = GENERATOR.uniform(0.9, 1.1, (3, 2, length)).astype(np.float32)
    for axes in ((2,), (1, 2), (0, 2)):
        expected = FUNCTIONS[function](array.astype(np.float64), axes)
        most = 1e-5 if function == "product" else 2e-6
        np.testing.assert_allclose(reduce(array, function, axes), expected, rtol=most)


@pytest.mark.parametrize("length", [5, 50])
def test_extremes_and_powers_at_the_end_of_numbers(length):
    array = np.full((2, length), -np.inf, np.float32)
    np.testing.assert_array_equal(reduce(array, "maximum", (1,)), [-np.inf] * 2)
    np.testing.assert_array_equal(reduce(-array, "minimum", (1,)), [np.inf] * 2)
    array = GENERATOR.uniform(1, 2, (2, length)).astype(np.float32)
    array[1, 4 * length // 5] = np.nan
    for name, extreme in (("maximum", np.nanmax), ("minimum", np.nanmin)):
        np.testing.assert_array_equal(reduce(array, name, (1,)), extreme(array, 1))
    assert np.isnan(reduce(array, "log_sum_exp", (1,))).tolist() == [False, True]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_element_is_reduced_to_one_where_it_lies(shape, function):
    array = GENERATOR.uniform(0.1, 2, shape).astype(np.float32)
    axes = tuple(axis for axis, length in enumerate(shape) if length == 1)
    expected = reduce(array, function, axes)
    np.testing.assert_array_equal(reduce(array, function, axes, in_place=True), expected)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_that_do_not_fit_wrap(kind):
    limits = np.iinfo(kind)
    array = np.array([limits.max, limits.max, limits.min, limits.min, -7], kind)
    with np.errstate(over="ignore"):
        for function, expected in {
            "sum": array.sum(dtype=kind),
            "product": array.prod(dtype=kind),
            "l1": np.abs(array).sum(dtype=kind),
            "sum_square": (array * array).sum(dtype=kind),
        }.items():
            assert reduce(array, function, (0,)) == expected


@pytest.mark.parametrize("kind", INTEGERS)
def test_means_of_integers_are_cut_towards_zero(kind):
    array = np.array([[-7, 2], [9, 4]], kind)
    np.testing.assert_array_equal(reduce(array, "mean", (1,)), [-2, 6])

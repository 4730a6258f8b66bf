"""Gradients of convolutions' weights beside a naive loop in 64 bits."""

import random
from math import prod

import numpy as np
import pytest

from arenite.runtime import ProgramError, Session
from support.one_step import Given, one_step


def naive(x, g, kernel, strides, dilations, before, groups):
    """Return the gradient, and the sum of the magnitudes of what each element sums up."""
    _, rows, columns, channels = x.shape
    _, *counts, outputs = g.shape
    inner, made = channels // groups, outputs // groups
    found, sizes = (np.zeros((outputs, inner, *kernel)) for _ in range(2))
    tops, lefts = (
        np.arange(count) * stride - first
        for count, stride, first in zip(counts, strides, before, strict=True)
    )
    for ky, kx in np.ndindex(*kernel):
        y, left = tops + ky * dilations[0], lefts + kx * dilations[1]
        ys, xs = (
            np.flatnonzero((y >= 0) & (y < rows)),
            np.flatnonzero((left >= 0) & (left < columns)),
        )
        seen = x[:, y[ys]][:, :, left[xs]]
        given = g[:, ys][:, :, xs]
        for group in range(groups):
            into = slice(group * made, (group + 1) * made)
            operands = (
                given[..., into].reshape(-1, made),
                seen[..., group * inner : (group + 1) * inner].reshape(-1, inner),
            )
            found[into, :, ky, kx] = operands[0].T @ operands[1]
            sizes[into, :, ky, kx] = np.abs(operands[0]).T @ np.abs(operands[1])
    return found, sizes


def random_case(draw):
    kernel, strides, dilations = ([draw.randint(1, 3) for _ in range(2)] for _ in range(3))
    if draw.random() < 0.2:
        kernel = [draw.randint(1, 4), draw.randint(7, 11)]
    groups = draw.choice([1, 1, 2, 5, 16, 37])
    inner, made = draw.choice([(1, 1), (1, 1), (3, 2), (1, 13), (40, 1), (33, 29), (16, 12)])
    if groups > 5:
        inner, made = min(inner, 3), min(made, 2)
    lengths, counts = ([draw.randint(1, 12) for _ in range(2)] for _ in range(2))
    if draw.random() < 0.2:
        counts = [draw.randint(20, 30) for _ in range(2)]
    before = [draw.randint(0, 3) for _ in range(2)]
    images = draw.randint(1, 3)
    kernel_fields = {
        "strides": strides,
        "dilations": dilations,
        "before": before,
        "groups": groups,
    }
    shapes = (
        (images, *lengths, groups * inner),
        (images, *counts, groups * made),
        (groups * made, inner, *kernel),
    )
    return kernel_fields, shapes


def run(fields, shapes, x, g, threads=1):
    pieces = one_step(
        "WeightGradient", fields, [Given(shapes[0]), Given(shapes[1])], [Given(shapes[2])]
    )
    with Session.of_pieces(pieces, "gradient", threads=threads) as session:
        return session.run({"i0": x, "i1": g})["o0"]


@pytest.mark.parametrize("seed", range(60))
def test_a_gradient_is_that_of_a_naive_loop(seed):
    fields, shapes = random_case(random.Random(seed))
    generator = np.random.default_rng(seed)
    x, g = (generator.standard_normal(shape).astype(np.float32) for shape in shapes[:2])
    expected, sizes = naive(
        x.astype(np.float64), g.astype(np.float64), shapes[2][2:], fields["strides"],
        fields["dilations"], fields["before"], fields["groups"],
    )  # fmt: skip
    found = run(fields, shapes, x, g)
    terms = prod(shapes[1][:3])
    assert np.all(np.abs(found - expected) <= terms * 2.0**-24 * sizes)


@pytest.mark.parametrize(("inner", "groups"), [(40, 1), (5, 4), (1, 100)])
def test_threads_do_not_change_a_bit(inner, groups):
    outputs = 30 * groups if inner > 1 else groups
    shapes = ((2, 20, 22, groups * inner), (2, 20, 22, outputs), (outputs, inner, 3, 3))
    fields = {"before": [1, 1], "groups": groups}
    generator = np.random.default_rng(0)
    x, g = (generator.standard_normal(shape).astype(np.float32) for shape in shapes[:2])
    alone = run(fields, shapes, x, g)
    assert all(np.array_equal(alone, run(fields, shapes, x, g, threads)) for threads in (2, 3))


def test_what_is_no_number_stays_with_the_weights_that_it_reaches():
    x, g = np.ones((1, 4, 4, 2), np.float32), np.ones((1, 4, 4, 3), np.float32)
    x[0, 0, 0, 1] = np.nan
    found = run({"before": [1, 1]}, (x.shape, g.shape, (3, 2, 3, 3)), x, g)
    assert np.isnan(found[:, 1, :2, :2]).all()
    assert np.isfinite(found[:, 0]).all()
    assert np.isfinite(found[:, 1, 2]).all()


@pytest.mark.parametrize(
    ("fields", "x", "g", "made", "reason"),
    [
        ({}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 3, 1, 1), "groups and channels"),
        ({}, (1, 4, 4, 2), (1, 4, 4, 3), (2, 2, 1, 1), "groups and channels"),
        ({"groups": 0}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 2, 1, 1), "groups and channels"),
        ({"groups": 2}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 1, 1, 1), "groups and channels"),
        ({}, (1, 4, 4, 2), (2, 4, 4, 3), (3, 2, 1, 1), "batches differ"),
        ({}, (1, 4, 8), (1, 4, 4, 3), (3, 2, 1, 1), "must have rank 4"),
        ({}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 2, 1), "must have rank 4"),
        ({"strides": [0, 1]}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 2, 1, 1), "stride or dilation is 0"),
        ({"dilations": [1, 0]}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 2, 1, 1), "dilation is 0"),
        ({"before": [1]}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 2, 1, 1), "the wrong length"),
        ({"strides": [1 << 24, 1]}, (1, 4, 4, 2), (1, 4, 4, 3), (3, 2, 1, 1), "too large"),
    ],
)
def test_operands_that_do_not_fit_are_refused(fields, x, g, made, reason):
    pieces = one_step("WeightGradient", fields, [Given(x), Given(g)], [Given(made)])
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces(pieces, "damaged")


@pytest.mark.parametrize(
    ("groups", "weights", "packed", "reason"),
    [
        (1, (20, 3, 2, 2), (1, 2, 2, 3, 16), "panels of 16"),
        (3, (20, 3, 2, 2), (3, 2, 2, 3, 16), "panels of 16"),
        (0, (20, 3, 2, 2), (2, 2, 2, 3, 16), "panels of 16"),
        (1, (20, 3, 2, 2), (2, 2, 2, 3, 8), "panels of 16"),
        (1, (20, 3, 2, 2), (2, 2, 1, 3, 16), "other taps or inputs"),
        (1, (20, 3, 2, 2), (2, 2, 2, 4, 16), "other taps or inputs"),
        (1, (20, 12), (2, 2, 2, 3, 16), "rank 4"),
    ],
)
def test_panels_that_do_not_fit_a_filter_are_refused(groups, weights, packed, reason):
    pieces = one_step("PackFilter", {"groups": groups}, [Given(weights)], [Given(packed)])
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces(pieces, "damaged")

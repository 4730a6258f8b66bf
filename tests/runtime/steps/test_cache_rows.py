"""Rows of caches of 8 bits beside NumPy."""

import numpy as np
import pytest

from arenite.runtime import Session
from support.cache_rows import floats, rounded, row_bytes
from support.one_step import Given, one_step


def made_of(rows, width, threads=1):
    source = Given(rows.shape)
    result = Given((*rows.shape[:-1], rows.shape[-1] // width * row_bytes(width)), "int8")
    program = one_step("CacheRows", {"width": width}, [source], [result])
    with Session.of_pieces(program, "rows", threads=threads) as session:
        return session.run({"i0": rows})["o0"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", [1, 7, 16, 32, 33, 64, 80, 256])
def test_rows_are_those_of_numpy(width, threads):
    rows = np.random.default_rng(width).normal(0, 3, (5, 40, 2, width)).astype(np.float32)
    rows[0, 0] = 0
    rows[0, 1] *= 1e-9  # scales that 16 bits make 0
    rows[0, 2] *= 3e-4  # subnormal scales
    np.testing.assert_array_equal(made_of(rows, width, threads), rounded(rows))


def test_an_element_is_half_a_unit_of_its_block_away_at_most():
    rows = np.random.default_rng(0).normal(0, 3, (200, 64)).astype(np.float32)
    rows[:, 40] *= 50  # in the second block alone
    away = np.abs(floats(made_of(rows, 64), 64) - rows)
    largest = np.abs(rows).reshape(200, 2, 32).max(-1)
    assert (away.reshape(200, 2, 32).max(-1) <= 0.501 * largest / 127).all()
    assert away[:, :32].max() < away[:, 32:].max() / 10


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_makes_its_block_none(bad):
    rows = np.ones((2, 64), np.float32)
    rows[1, 40] = bad
    with np.errstate(invalid="ignore"):
        back = floats(made_of(rows, 64), 64)
    assert np.isnan(back[1, 32:]).all()
    np.testing.assert_allclose(back[0], 1, rtol=1e-3)
    np.testing.assert_allclose(back[1, :32], 1, rtol=1e-3)


def test_elements_of_subnormal_scales_are_a_unit_away_at_most():
    sizes = np.geomspace(1e-8, 1e-3, 200, dtype=np.float32)[:, None]
    rows = sizes * np.random.default_rng(3).uniform(-1, 1, (200, 32)).astype(np.float32)
    away = np.abs(floats(made_of(rows, 32), 32) - rows).max(-1)
    assert (away <= 0.501 * np.abs(rows).max(-1) / 127 * (1 + 2**-10) + 2.0**-25).all()


def test_heads_of_a_row_are_rounded_apart():
    rows = np.random.default_rng(0).normal(0, 3, (3, 48)).astype(np.float32)
    by_heads = rounded(rows.reshape(3, 3, 16)).reshape(3, -1)
    np.testing.assert_array_equal(made_of(rows, 16), by_heads)


def test_numbers_that_are_too_large_become_no_numbers():
    rows = np.full((1, 16), 1e9, np.float32)
    kept = made_of(rows, 16)
    with np.errstate(invalid="ignore"):
        assert np.isnan(floats(kept, 16)).all()

"""RFFT2D and what is read of it, beside LiteRT."""

import numpy as np
import pytest

from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_layers import PARTS, spectrum
from support.tflite_operator import Reference

SHAPES = {
    "frames of a signal": ((5, 1, 64), 1, 64),
    "frames filled up": ((3, 1, 50), 1, 64),
    "frames cut": ((3, 2, 50), 1, 32),
    "an image": ((8, 16), 8, 16),
    "images filled up": ((2, 5, 11), 8, 32),
    "more rows than columns": ((20, 3), 32, 4),
    "pairs": ((2, 2), 2, 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_transform_gives_what_litert_gives(name, tmp_path):
    shape, rows, columns = SHAPES[name]
    path = tmp_path / "spectrum.tflite"
    path.write_bytes(spectrum(shape, rows, columns))
    session = PoisonedSession(build(path, tmp_path))
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    made = session.run({"x": x})
    padded = np.zeros((*shape[:-2], rows, columns))
    part = x[..., :rows, :columns]
    padded[..., : part.shape[-2], : part.shape[-1]] = part
    exact = np.fft.rfft2(padded)
    parts = (np.abs(exact), exact.real, exact.imag, exact.real)
    for name, expected in zip(PARTS, parts, strict=True):
        np.testing.assert_allclose(made[name], expected, rtol=1e-6, atol=1e-6)
    if rows > 1:  # LiteRT's own makes too little of a single row
        for own, other in zip(made.values(), Reference(path).run([x]), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-6)


def test_complex_numbers_are_moved_as_pairs(tmp_path):
    path = tmp_path / "spectrum.tflite"
    path.write_bytes(spectrum((6, 2, 8), 2, 8, ("REAL", "IMAG"), moved_to=(3, 4, 5)))
    x = np.random.default_rng(2).standard_normal((6, 2, 8)).astype(np.float32)
    made = PoisonedSession(build(path, tmp_path)).run({"x": x})
    exact = np.fft.rfft2(x).reshape(3, 4, 5)
    np.testing.assert_allclose(made["REAL"] + 1j * made["IMAG"], exact, rtol=1e-6, atol=1e-5)


REFUSED = {
    "complex outputs of the model": ((5, 1, 64), 1, 64, ()),
    "supported: powers of 2": ((5, 1, 64), 1, 48, PARTS),
    "complex inputs are unsupported": ((5, 1, 64), 1, 64, ("NEG",)),
}


def test_complex_numbers_in_another_shape_are_no_outputs(tmp_path):
    path = tmp_path / "spectrum.tflite"
    path.write_bytes(spectrum((5, 1, 64), 1, 64, (), moved_to=(5, 33)))
    with pytest.raises(UnsupportedOperatorsError, match="outputs of the model"):
        build(path, tmp_path)


@pytest.mark.parametrize("reason", REFUSED)
def test_complex_numbers_that_we_do_not_have_are_refused(reason, tmp_path):
    path = tmp_path / "spectrum.tflite"
    path.write_bytes(spectrum(*REFUSED[reason]))
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)

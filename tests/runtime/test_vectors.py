"""Kernels that are told to use AVX2 at most leave the registers of AVX-512 alone."""

from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from support.tiny_onnx import parse, save, with_random_weights
from support.wide_registers import uses_wide_registers

FEATURES = Path("/proc/cpuinfo").read_text()


@pytest.mark.skipif(
    " avx512vl" not in FEATURES or " xgetbv1" not in FEATURES,
    reason="the processor has no AVX-512, or does not say which registers are in use",
)
def test_our_kernels_leave_registers_alone_that_they_may_not_use(tmp_path, monkeypatch):
    text = "(float[1,32,9,9] x) => (y) <float[32,32,3,3] a> { y = Conv(x, a) }"
    model = save(tmp_path, with_random_weights(parse(text)))
    program = tmp_path / "model.arena"
    build_program(model, program, reading=Reading())
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, np.ones((1, 32, 9, 9), np.float32))
    assert uses_wide_registers("onnx", "arenite", program, inputs)
    monkeypatch.setenv("ARENITE_VECTORS", "avx2")
    assert not uses_wide_registers("onnx", "arenite", program, inputs)

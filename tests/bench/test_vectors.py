"""Engines that may not use AVX-512: told so, and seen not to."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.building import build_program
from harness import MissingInputsError, vectors
from harness.vectors import file_offset, limited
from harness.wide_registers import uses_wide_registers
from support.running import with_random_weights
from support.tiny_onnx import parse, save

CODE = bytes.fromhex("31c90f01d0c3b80f01d000")
"""xor ecx, ecx; xgetbv; ret; and a number that looks like it."""
FEATURES = Path("/proc/cpuinfo").read_text()


def library(path):
    """Write an ELF file of one segment, which is loaded at 0x1000."""
    header = bytearray(64)
    struct.pack_into("<Q", header, 32, 64)
    struct.pack_into("<HH", header, 54, 56, 1)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 120, 0x1000, 0, len(CODE), len(CODE), 16)
    path.write_bytes(bytes(header) + segment + CODE)
    return path


def test_only_the_instruction_is_replaced(monkeypatch, tmp_path):
    path = library(tmp_path / "engine.so")
    monkeypatch.setattr(vectors, "instructions", lambda _path: [0x1002])
    assert vectors._without_avx512(path) == 1
    assert path.read_bytes()[120:] == bytes.fromhex("31c9b00790c3b80f01d000")


def test_an_address_that_holds_another_instruction_is_refused(monkeypatch, tmp_path):
    path = library(tmp_path / "engine.so")
    monkeypatch.setattr(vectors, "instructions", lambda _path: [0x1001])
    with pytest.raises(MissingInputsError, match="no XGETBV at 0x1001"):
        vectors._without_avx512(path)


def test_an_address_that_is_not_loaded_is_refused(tmp_path):
    content = library(tmp_path / "engine.so").read_bytes()
    assert file_offset(content, 0x1000) == 120
    with pytest.raises(MissingInputsError, match="no segment is loaded at 0xfff"):
        file_offset(content, 0xFFF)


def test_what_is_told_is_taken_back(monkeypatch):
    monkeypatch.setenv("ARENITE_VECTORS", "any")
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    before = dict(os.environ)
    with limited(["arenite"]):
        assert os.environ["ARENITE_VECTORS"] == "avx2"
        assert "-AVX512F" in os.environ["GLIBC_TUNABLES"]
    assert dict(os.environ) == before


@pytest.mark.skipif(
    " avx512vl" not in FEATURES or " xgetbv1" not in FEATURES,
    reason="the processor has no AVX-512, or does not say which registers are in use",
)
def test_our_kernels_leave_registers_alone_that_they_may_not_use(tmp_path):
    model = save(
        tmp_path,
        with_random_weights(
            parse("(float[1,32,9,9] x) => (y) <float[32,32,3,3] a> { y = Conv(x, a) }")
        ),
    )
    program = tmp_path / "model.arena"
    build_program(model, program, reading=Reading())
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, np.ones((1, 32, 9, 9), np.float32))
    assert uses_wide_registers("onnx", "arenite", program, inputs)
    with limited(["arenite"]):
        assert not uses_wide_registers("onnx", "arenite", program, inputs)

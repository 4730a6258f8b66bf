"""What kernels do for processors without products of 64 bits or without loads of signs, here."""

import ctypes
import subprocess
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from support.exported_c import WARNINGS, Machine, Micro, assert_same_bits, compiled, exported
from support.operator_models import conv, dense, depthwise
from support.quantised_chain import mobile, residual
from support.tflite_networks import encoder

NO_SIGNS = ("-D__XTENSA__", "-D__XTENSA_CALL0_ABI__")
NO_WIDE_PRODUCTS = ("-D__ARM_ARCH_6M__",)
SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")

PRODUCTS = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define ROW_TABLES 0
#define SIZED_ROWS 0
#define SINGLE_ROUNDING 0
#include "common.h"
#include "dsp.h"
#if !HAS_SHORT_PRODUCTS
#error "the halves are not compiled"
#endif
int32_t scaled(int32_t sum, int32_t factor, int32_t shift);
int32_t high(int32_t sum, int32_t factor);
int32_t scaled(int32_t sum, int32_t factor, int32_t shift)
{
    return requantised(sum, factor, shift);
}
int32_t high(int32_t sum, int32_t factor)
{
    return rounded_high(sum, factor);
}
"""


def test_products_of_halves_are_those_of_64_bits(tmp_path: Path) -> None:
    source = tmp_path / "products.c"
    source.write_text(PRODUCTS)
    folder = files("arenite.runtime.cexport.kernels")
    subprocess.run(
        ["gcc", "-std=c99", *WARNINGS, *SANITIZED, "-O1", "-fPIC", "-shared", *NO_WIDE_PRODUCTS,
         f"-I{folder}", source, "-o", tmp_path / "products.so"],
        check=True,
    )  # fmt: skip
    library = ctypes.CDLL(str(tmp_path / "products.so"))
    ends = [0, 1, 2, 3, 2**14, 2**15, 2**16 - 1, 2**16, 2**16 + 1, 2**30, 2**31 - 2, 2**31 - 1]
    random = np.random.default_rng(0)
    sums = {*ends, *(-each for each in ends), *random.integers(-(2**31), 2**31, 200).tolist()}
    factors = [*ends, *random.integers(2**30, 2**31, 200).tolist()]
    for number in sums:
        for factor in factors:
            product = number * factor
            assert library.high(number, factor) == (product + 2**31) >> 32
            assert library.scaled(number, factor, 0) == (product + 2**30) >> 31


@pytest.mark.parametrize("flags", [NO_SIGNS, NO_WIDE_PRODUCTS], ids=lambda flags: flags[0])
@pytest.mark.parametrize(
    "network",
    [
        mobile, residual, partial(encoder, "int8"), conv, depthwise, dense,
        lambda: conv(window=(5, 2), depth=(1, 9)), lambda: conv(window=(1, 1), depth=(7, 24)),
        lambda: depthwise(padding=1, activation=1),
    ],
)  # fmt: skip
def test_a_network_agrees_with_tensorflow_lite_micro_to_the_bit(
    network: Callable[[], bytes], flags: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "network.tflite"
    path.write_bytes(network())
    export = exported(path)
    machine = Machine.of(export, compiled(export, tmp_path / "c", *SANITIZED, *flags))
    assert_same_bits(machine, Micro(path), 5)

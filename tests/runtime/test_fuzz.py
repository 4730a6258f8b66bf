"""Native code under the sanitizers: damaged files, and kernels on shapes at random."""

import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from arenite.runtime.rewrites.weight_budget import WeightBudget
from support.banded_programs import Network, Sliding, in_bands
from support.coded_programs import build_coded, network
from support.one_step import Given, constant, one_step
from support.row_programs import program_by_rows
from support.rows_beside_whole import image
from support.running import MANY_KINDS, build, with_random_weights
from support.tiny_onnx import parse, save
from support.tiny_programs import classifier

LIMITS = np.array([[2**31 - 1, 2**31 - 1], [-(2**31), -(2**31)]], np.int32)
FUZZ = Path(__file__).resolve().parents[2] / "runtime" / "fuzz"
COUNT = int(os.environ.get("ARENITE_FUZZ_COUNT", "300"))


def overflowing(folder):
    """Programs that reduce integers to what does not fit them."""
    for function in ("sum", "product", "l1", "sum_square"):
        path = folder / f"{function}.arena"
        reduce = {"function": function, "axes": [1]}
        pieces = one_step("Reduce", reduce, [constant(LIMITS)], [Given((2,), "int32")])
        path.write_bytes(b"".join(pieces))
        yield path


def banded(folder):
    """A program that runs in bands of rows, which lie anywhere."""
    layers = Network((9, 5, 4))
    first = layers.conv(4, Sliding((3, 3), padding=(1, 1, 1, 1)))
    layers.depthwise(Sliding((3, 3), padding=(1, 1, 1, 1)), addend=first)
    layers.product(3)
    path = folder / "banded.arena"
    path.write_bytes(layers.file(in_bands(layers, [2]), scatter=random.Random(0)))
    return path


def by_rows(folder):
    """Programs of one step each, by rows that lie anywhere."""
    x, y, weights = image(6, 5, 3), image(3, 5, 3), constant(np.ones((2, 3, 2, 3), np.float32))
    taps = {"row_low": [0, 2, 4], "column_low": [0, 1, 2, 3, 4]}
    move = {"shape": [6, 5, 3], "input_strides": [15, 3, 1], "output_strides": [30, 6, 1]}
    joined = [move, move | {"input": 1, "output_start": 3}]
    window = {"kind": "average", "window": [6, 5]}
    for kind, kernel, inputs, output, bands in (
        ("Pool2D", {"kind": "maximum", "window": [2, 1], "strides": [2, 1]}, [x], y, [(0, 3)]),
        ("Pool2D", window, [x], image(1, 1, 3), [(0, 2), (2, 4)]),
        ("Binary", {}, [x, constant(np.ones(3, np.float32))], x, [(0, 4), (4, 2)]),
        ("Softmax", {}, [x], x, [(0, 4), (4, 2)]),
        ("Resize2D", taps, [x], y, [(0, 1), (1, 2)]),
        ("Copy", {"moves": joined}, [x, x], image(6, 5, 6), [(0, 4), (4, 2)]),
        ("TransposedConv2D", {"strides": [2, 1]}, [x, weights], image(13, 6, 2), [(0, 9), (9, 4)]),
    ):
        data = program_by_rows(
            kind, kernel, inputs, output, bands=bands, scratch=64, draw=random.Random(0),
            gathers=kernel is not window,
        )  # fmt: skip
        path = folder / f"rows-{kind}-{'sums' if kernel is window else 'made'}.arena"
        path.write_bytes(data)
        yield path


def test_damaged_programs_load_and_run_without_a_fault(sanitised, tmp_path):
    files = [classifier(tmp_path, quantised=quantised) for quantised in (False, True)]
    files.append(build(save(tmp_path, with_random_weights(parse(MANY_KINDS))), tmp_path))
    for budget in (None, WeightBudget(30, is_percent=True)):
        folder = tmp_path / str(budget is None)
        folder.mkdir()
        path = network(folder, num_values=32, density=0.3)
        files.append(build_coded(path, folder, budget)[0])
    files += overflowing(tmp_path)
    files += [banded(tmp_path), *by_rows(tmp_path)]
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ,
         f"BUILD={sanitised / 'fuzz-runtime'}", f"COUNT={COUNT}",
         f"FILES={' '.join(map(str, files))}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{len(files) * COUNT} files damaged" in done.stdout
    assert "no fault" in done.stdout


@pytest.mark.parametrize("vectors", ["avx512", "avx2", "any"])
@pytest.mark.parametrize("kind", ["convolutions", "depthwise", "pools", "winograd"])
def test_kernels_equal_a_naive_loop_whole_and_in_bands(sanitised, kind, vectors):
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, kind,
         f"BUILD={sanitised / 'fuzz-runtime'}", f"COUNT={COUNT}"],
        env=os.environ | {"ARENITE_VECTORS": vectors},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{COUNT} {kind}, no difference" in done.stdout


# Without a limit, a processor may have means that no vectors have: sums of products of bytes.
@pytest.mark.parametrize("vectors", [None, "avx512", "avx2", "any"])
def test_int8_kernels_equal_a_naive_loop_to_the_bit(sanitised, vectors):
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, "int8_kernels",
         f"BUILD={sanitised / 'fuzz-runtime'}", f"COUNT={COUNT}"],
        env=os.environ | ({} if vectors is None else {"ARENITE_VECTORS": vectors}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} convolutions and pools, no difference" in done.stdout

"""Native code under the sanitizers: damaged files, and kernels on shapes at random."""

import os
import subprocess
from pathlib import Path

import pytest

from support.fuzz_corpus import corpus
from support.fuzz_seeds import programs

FUZZ = Path(__file__).resolve().parents[2] / "runtime" / "fuzz"
COUNT = int(os.environ.get("ARENITE_FUZZ_COUNT", "300"))


def test_damaged_programs_load_and_run_without_a_fault(sanitised, tmp_path):
    files = programs(tmp_path)
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ,
         f"BUILD={sanitised / 'fuzz-runtime'}", f"COUNT={COUNT}",
         f"FILES={' '.join(map(str, files))}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{len(files) * COUNT} files damaged" in done.stdout
    assert "no fault" in done.stdout


@pytest.mark.parametrize("kind", ["programs", "weights"])
def test_what_fuzzers_came_by_is_still_no_fault(sanitised, kind, tmp_path):
    files = corpus(tmp_path, kind)
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, f"replay-{kind}",
         f"BUILD={sanitised / 'fuzz-runtime'}", f"FILES={' '.join(map(str, files))}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{len(files)} files, no fault" in done.stdout


# Each kind of processor computes other shapes: together as many as are asked for.
VECTORS = ("avx512", "avx2", "any")
EACH = COUNT // len(VECTORS)


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize(
    "kind", ["convolutions", "depthwise", "pools", "weight_gradients", "winograd"]
)
def test_kernels_equal_a_naive_loop_whole_and_in_bands(sanitised, kind, vectors):
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, kind, f"COUNT={EACH}",
         f"BUILD={sanitised / 'fuzz-runtime'}", f"SEED={VECTORS.index(vectors) * EACH}"],
        env=os.environ | {"ARENITE_VECTORS": vectors},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{EACH} {kind}, no difference" in done.stdout


# Only without a limit are dot products of bytes used.
@pytest.mark.parametrize("vectors", [None, "avx512", "avx2", "any"])
def test_int8_kernels_equal_a_naive_loop_to_the_bit(sanitised, vectors):
    done = subprocess.run(
        ["make", "--silent", "-j2", "-C", FUZZ, "int8_kernels",
         f"BUILD={sanitised / 'fuzz-runtime'}", f"COUNT={COUNT}"],
        env=os.environ | ({} if vectors is None else {"ARENITE_VECTORS": vectors}),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} convolutions and pools, and sums, no difference" in done.stdout

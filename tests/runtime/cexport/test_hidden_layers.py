"""Hidden layers in groups of channels as C: the bits of the whole network, in less memory."""

from pathlib import Path

import numpy as np
import pytest

from support.exported_c import Bands, Machine, Micro, assert_same_bits, compiled, drawn, exported
from support.tflite_networks import hidden, widened

SANITIZED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
NETWORKS = {"layers": hidden, "image": widened}


def least(name: str, folder: Path) -> tuple[Path, Bands, int]:
    path = folder / "network.tflite"
    path.write_bytes(NETWORKS[name]())
    bands = Bands(path)
    return path, bands, bands.least


@pytest.mark.parametrize("is_quick", [True, False], ids=["quick", "small"])
@pytest.mark.parametrize("name", NETWORKS)
def test_groups_give_the_bits_of_reference_kernels(
    name: str, is_quick: bool, tmp_path: Path
) -> None:
    path, bands, budget = least(name, tmp_path)
    split = bands.within(budget, is_quick=is_quick)
    assert split.arena_bytes < exported(path).arena_bytes
    kernel = "pointwise_sums_pairs_s8" if is_quick else "pointwise_sums_s8"
    assert kernel in split.kernels
    machine = Machine.of(split, compiled(split, tmp_path / "c", *SANITIZED))
    assert assert_same_bits(machine, Micro(path), 5) > 1


@pytest.mark.parametrize("rounding", ["single", "even"])
def test_groups_round_as_the_whole(rounding: str, tmp_path: Path) -> None:
    path, bands, budget = least("layers", tmp_path)
    machines = [
        Machine.of(each, compiled(each, tmp_path / str(each.arena_bytes), *SANITIZED))
        for each in (exported(path, rounding=rounding), bands.within(budget, rounding=rounding))
    ]
    for seed in range(3):
        whole, split = (
            next(iter(each.run(drawn(each.export, seed)).values())) for each in machines
        )
        np.testing.assert_array_equal(split, whole)

"""Budgets of flash: coded weights, kernels of less code, and what both take."""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.base.errors import OptionsError
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.making.exporting import CRequest, ExportedC, write_c
from arenite.pipeline.making.flash import FlashBudgetError, flash_of
from arenite.runtime.cexport.base.coding import LONGEST, ByteCode, joined
from arenite.runtime.rewrites import WeightBudget
from arenite.strategies import find
from support import tflite_networks as networks
from support.exported_c import Machine, compiled, drawn, exported

NORMAL = np.random.default_rng(0).normal(0, 30, 5000).clip(-128, 127).astype(np.int8).tobytes()
FIBONACCI = [1, 1]
while len(FIBONACCI) < 25:
    FIBONACCI.append(sum(FIBONACCI[-2:]))


def counts(data: bytes) -> np.ndarray:
    return np.bincount(np.frombuffer(data, np.uint8), minlength=256)


def decoded(code: ByteCode, data: bytes, count: int) -> bytes:
    """What the kernel decodes, written once more."""
    bits = np.unpackbits(np.frombuffer(data, np.uint8)).tolist()
    lasts, bases = code.tables()
    found, at = bytearray(), 0
    while len(found) < count:
        top = int("".join(map(str, (bits[at : at + 16] + [0] * 16)[:16])), 2)
        longer = int(np.flatnonzero(top <= lasts)[0])
        length = code.shortest + longer
        found.append(code.symbols[(top >> (16 - length)) + int(bases[longer])])
        at += length
    return bytes(found)


@pytest.mark.parametrize(
    "data", [NORMAL, bytes(900), b"\x01\x02\x02" * 50, bytes(700) + bytes(range(256))]
)
def test_a_code_gives_its_bytes_back(data):
    code = ByteCode.of(counts(data))
    assert decoded(code, code.coded(data), len(data)) == data


def test_a_code_takes_hardly_more_bits_than_the_entropy():
    shares = counts(NORMAL)[counts(NORMAL) > 0] / len(NORMAL)
    entropy = -(shares * np.log2(shares)).sum() * len(NORMAL) / 8
    assert entropy <= len(ByteCode.of(counts(NORMAL)).coded(NORMAL)) <= 1.01 * entropy


def test_no_code_is_longer_than_the_kernel_reads():
    uneven = np.zeros(256, np.int64)
    uneven[: len(FIBONACCI)] = FIBONACCI
    code = ByteCode.of(uneven)
    assert code.lengths.max() <= LONGEST < len(FIBONACCI) - 1
    assert (2.0 ** -code.lengths[code.lengths > 0]).sum() <= 1
    data = bytes(range(len(FIBONACCI)))
    assert decoded(code, code.coded(data), len(data)) == data


def test_parts_lie_one_behind_the_other():
    data, starts = joined([b"ab", b"", b"c"])
    assert starts == [0, 2, 2]
    assert data[:3] == b"abc"
    assert len(data) == 6, "the kernel reads 3 bytes behind"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(networks.autoencoder())
    return path


def within(path: Path, flash: int, **options: object) -> ExportedC:
    given = {"reading": Reading(), "is_tested": False, **options}
    reading = given.pop("reading")
    folder = path.with_name("c")
    return write_c(CRequest(path, folder, reading, find("best"), "tiny", flash=flash, **given))


def test_the_quickest_way_within_the_budget_has_the_same_bits(path: Path, tmp_path: Path) -> None:
    roomy = within(path, 1 << 20)
    points = roomy.frontier
    assert [each.flash for each in points] == sorted({e.flash for e in points}, reverse=True)
    assert [each.added for each in points] == sorted(each.added for each in points)
    assert (points[0].is_quick, points[0].coded) == (True, ())
    assert flash_of(roomy.export) == points[0].flash
    assert not points[-1].is_quick
    expected = Machine.of(roomy.export, compiled(roomy.export, tmp_path / "whole"))
    inputs = drawn(roomy.export, 0)
    for point in (points[1], points[-1]):
        small = within(path, point.flash + 40).export
        assert flash_of(small) <= point.flash + 40
        machine = Machine.of(small, compiled(small, tmp_path / f"at_{point.flash}"))
        for name, found in machine.run(inputs).items():
            np.testing.assert_array_equal(found, expected.run(inputs)[name])


def test_coded_weights_are_decoded_into_the_arena(path: Path, tmp_path: Path) -> None:
    path.write_bytes(with_few_values(networks.autoencoder()))
    whole = exported(path, name="tiny")
    small = within(path, whole.weight_bytes - 2000, is_tested=True).export
    assert small.coded
    assert all(coded < size for size, coded in small.coded.values())
    assert "decoded_weights" in small.kernels
    expected = Machine.of(whole, compiled(whole, tmp_path / "whole"))
    machine = Machine.of(small, compiled(small, tmp_path / "small", "-fsanitize=undefined"))
    for seed in range(2):
        inputs = drawn(whole, seed)
        for name, found in machine.run(inputs).items():
            np.testing.assert_array_equal(found, expected.run(inputs)[name])


def with_few_values(model: bytes) -> bytes:
    """Return a model of whose constants most bytes are 0, as of one that was pruned."""
    import tflite

    data = bytearray(model)
    graph = tflite.Model.GetRootAs(bytes(model), 0)
    for index in range(graph.BuffersLength()):
        buffer = graph.Buffers(index)
        if buffer.DataLength() < 1000:
            continue
        content = buffer.DataAsNumpy().tobytes()
        at = model.index(content)
        kept = np.frombuffer(content, np.int8).copy()
        kept[np.abs(kept) < 110] = 0
        data[at : at + len(content)] = kept.tobytes()
    return bytes(data)


def test_a_budget_below_the_least_is_refused(path: Path) -> None:
    least = within(path, 1 << 20).frontier[-1].flash
    path.with_name("c").rename(path.with_name("before"))
    with pytest.raises(FlashBudgetError, match="the budget of flash is") as caught:
        within(path, 1000)
    assert (caught.value.budget, caught.value.least) == (1000, least)
    assert not path.with_name("c").exists()


def test_options_that_exclude_a_budget_of_flash_are_named(path: Path) -> None:
    from arenite.planner import Budget

    with pytest.raises(OptionsError, match=r"--flash is for our own .* excludes --budget"):
        within(path, 1 << 20, budget=Budget.parse("50%"))
    reading = Reading(weight_budget=WeightBudget.parse("50%"))
    with pytest.raises(OptionsError, match="--weights and --flash exclude each other"):
        within(path, 1 << 20, reading=reading)


def test_the_header_states_code_and_cycles_and_the_compiler_checks_flash(
    path: Path, tmp_path: Path
) -> None:
    export = within(path, 1 << 20).export
    header = export.files["tiny.h"].decode()
    assert f"#define TINY_CODE_BYTES {export.estimate.code_bytes}" in header
    assert re.search(r"#define TINY_CYCLES \d+", header)
    flash = flash_of(export)
    assert ctypes.CDLL(str(compiled(export, tmp_path / "fits", f"-DTINY_FLASH_LIMIT={flash}")))
    with pytest.raises(AssertionError, match="weights_and_code_fit_flash"):
        compiled(export, tmp_path / "small", f"-DTINY_FLASH_LIMIT={flash - 1}")


def test_cycles_of_floats_are_not_estimated(path: Path) -> None:
    path.write_bytes(networks.autoencoder("float32"))
    assert exported(path, name="tiny").estimate.cycles is None

"""Blocks in bands of rows: the bits of the whole in fewer bytes."""

import pytest

from bench.contests.bands import BLOCKS, TILES, WHOLE, block_rows, bottleneck, inverted, level
from support.contests import asked, run_contest


@pytest.mark.parametrize(
    ("name", "block"),
    [("inverted", inverted(9, 8, 48, 8)), ("bottleneck", bottleneck(9, 8)),
     ("level", level(9, 8, 16))],
)  # fmt: skip
def test_bands_make_the_bits_of_the_whole_in_fewer_bytes(name, block, tmp_path):
    given = asked("banded-blocks", tmp_path, "--rounds", "1")
    rows = {row["rows"]: row for row in block_rows(name, block, given, 0.0)}
    assert not given.failures
    assert all(row["same bits"] for way, row in rows.items() if way != TILES)
    between = [rows[way]["between, B"] for way in ("1", "2", "4")]
    assert between == sorted(between)
    assert between[0] < rows[WHOLE]["between, B"]
    assert rows["1"]["turns"] > rows["8"]["turns"] > rows[WHOLE]["turns"]


def test_a_block_that_is_not_there_is_named(capsys):
    assert run_contest("banded-blocks", "resnet-3") == 2
    assert "there is no block resnet-3" in capsys.readouterr().err


@pytest.mark.parametrize("prefix", ["mobilenet", "resnet", "unet"])
def test_networks_of_all_kinds_are_among_them(prefix):
    assert any(name.startswith(prefix) for name in BLOCKS)

"""Blocks in bands of rows: the bits of the whole in fewer bytes."""

import pytest

import banded_blocks
from banded_blocks import BLOCKS, TILES, WHOLE, bottleneck, inverted, level, measured_rows


def test_bands_make_the_bits_of_the_whole_in_fewer_bytes(monkeypatch, tmp_path):
    small = {
        "inverted": inverted(9, 8, 48, 8), "bottleneck": bottleneck(9, 8), "level": level(9, 8, 16)
    }  # fmt: skip
    monkeypatch.setattr(banded_blocks, "BLOCKS", small)
    monkeypatch.setattr(banded_blocks, "_ROUND_S", 0.0)
    for name in small:
        rows = {row.way: row for row in measured_rows(name, tmp_path, 1)}
        assert all(row.same_bits for row in rows.values() if row.way != TILES)
        between = [rows[way].between for way in ("1", "2", "4")]
        assert between == sorted(between)
        assert between[0] < rows[WHOLE].between
        assert rows["1"].turns > rows["8"].turns > rows[WHOLE].turns


def test_a_block_that_is_not_there_is_named(capsys):
    assert banded_blocks.main(["resnet-3"]) == 2
    assert "there is no block resnet-3" in capsys.readouterr().err


@pytest.mark.parametrize("prefix", ["mobilenet", "resnet", "unet"])
def test_networks_of_all_kinds_are_among_them(prefix):
    assert any(name.startswith(prefix) for name in BLOCKS)

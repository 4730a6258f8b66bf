"""Policies executed on a small network."""

import pytest

pytest.importorskip("onnx")

from bench.contests import policies
from support.contests import rows_of
from support.trading import swish_layers


def test_each_policy_gives_the_same_bits_in_the_arena_that_was_planned(monkeypatch, tmp_path):
    monkeypatch.setattr(policies, "EXECUTED", {"resnet50": lambda _size: swish_layers()})
    rows, failures = rows_of("policies-executed", tmp_path, "--rounds", "1")
    assert not failures
    assert {row["policy"] for row in rows} == set(policies.EXECUTED_POLICIES)
    for row in rows:
        assert row["same bits"]
        assert row["of whole"] < 1
        assert (row["moved, B"] > 0) == (row["file, B"] > 0)
        if row["policy"] == "offload-prefetch":
            assert row["moved, B"] > 0
            assert row["steps again"] == 0
        if row["budget"] != "least":
            assert 100 * row["of whole"] <= int(row["budget"].removesuffix(" %"))

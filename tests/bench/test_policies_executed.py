"""What executes policies, on a small network."""

import json

import pytest

pytest.importorskip("onnx")

import policies_executed
from support.trading import swish_layers


def test_each_policy_gives_the_same_bits_in_the_arena_that_was_planned(monkeypatch, capsys):
    networks = {"resnet50": lambda _size: swish_layers()}
    monkeypatch.setattr(policies_executed, "NETWORKS", networks)
    code = policies_executed.main(["--network", "resnet50", "--rounds", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert code == 0
    assert {row["policy"] for row in rows} == set(policies_executed.POLICIES)
    for row in rows:
        assert row["is_same"]
        assert row["of_whole"] < 1
        assert (row["moved_bytes"] > 0) == (row["file_bytes"] > 0)
        if row["policy"] == "offload-prefetch":
            assert row["moved_bytes"] > 0
            assert row["steps_again"] == 0
        if row["budget"] != "least":
            assert 100 * row["of_whole"] <= int(row["budget"].removesuffix(" %"))

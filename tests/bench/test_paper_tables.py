"""The cells of the paper that our networks give, and those that they do not."""

import json
from functools import cache

import pytest

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

from bench.contests.placement import OBJECTS, OFFSETS, PAPER, footprint, paper_cell
from support.contests import run_contest


@cache
def measured(network: str) -> dict[str, int]:
    return footprint(network)


@pytest.mark.parametrize(
    ("network", "num_records", "naive", "offsets_bound", "objects_bound"),
    [
        ("mobilenet-v1", 30, 20_182_856, 4_816_896, 4_816_896),
        ("mobilenet-v2", 65, 27_591_112, 6_021_120, 6_924_288),
    ],
)
def test_a_mobilenet_has_exactly_the_records_of_the_paper(
    network: str, num_records: int, naive: int, offsets_bound: int, objects_bound: int
) -> None:
    ours = measured(network)
    assert ours["records"] == num_records
    assert ours["naive"] == naive
    assert ours["offsets-bound"] == offsets_bound
    assert ours["objects-bound"] == objects_bound


AS_IN_THE_PAPER = [
    ("mobilenet-v1", "naive"),
    ("mobilenet-v1", "offsets-bound"),
    ("mobilenet-v2", "naive"),
    ("mobilenet-v2", "offsets-bound"),
    ("mobilenet-v2", "objects-bound"),
    ("deeplab-v3", "offsets-bound"),
    ("posenet", "offsets-bound"),
]


def matches(network: str, row: str, size: int) -> bool:
    return paper_cell(network, row, size).startswith("= ")


@pytest.mark.parametrize("network", PAPER)
def test_these_cells_are_as_in_the_paper_and_no_others(network: str) -> None:
    cells = measured(network)
    matching = [(network, row) for row in PAPER[network] if matches(network, row, cells[row])]
    assert matching == [cell for cell in AS_IN_THE_PAPER if cell[0] == network]


def test_deeplab_has_the_paper_s_naive_total_with_channels_in_fours() -> None:
    cells = footprint("deeplab-v3", channels_in_fours=True)
    assert matches("deeplab-v3", "naive", cells["naive"])


def test_inception_v3_has_a_bound_next_to_the_paper_s() -> None:
    assert measured("inception-v3")["offsets-bound"] == 8_297_856


@pytest.mark.parametrize("network", PAPER)
def test_every_strategy_lies_between_its_bound_and_naive(network: str) -> None:
    cells = measured(network)
    for name in OFFSETS:
        assert cells["offsets-bound"] <= cells[name] < cells["naive"]
    for name in OBJECTS:
        assert cells["objects-bound"] <= cells[name] < cells["naive"]


def test_the_tables_flag_what_matches_and_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_contest("paper-tables", "mobilenet-v1", "blazeface") == 0
    printed = capsys.readouterr().out
    assert "Table 1: shared objects" in printed
    assert "Table 2: offsets" in printed
    assert "= 19.248" in printed
    assert "(2.698)" in printed


def test_json_has_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    run_contest("paper-tables", "mobilenet-v2", "--json")
    first, _ = json.loads(capsys.readouterr().out)["tables"]
    cells = {row[0]: row[first["columns"].index("mobilenet-v2")] for row in first["rows"]}
    assert cells["naive"] == "= 26.313"
    assert cells["lower bound"] == "= 6.604"


def test_an_unknown_network_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_contest("paper-tables", "vgg") == 2
    assert "there is no network vgg" in capsys.readouterr().err

"""The cells of the paper that our networks give, and those that they do not."""

import json
from functools import cache

import pytest

pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")

from paper_tables import OBJECTS, OFFSETS, PAPER, Footprint, footprint, main


@cache
def measured(network: str) -> Footprint:
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
    assert ours.num_records == num_records
    assert ours.cells["naive"] == naive
    assert ours.cells["offsets-bound"] == offsets_bound
    assert ours.cells["objects-bound"] == objects_bound


AS_IN_THE_PAPER = [
    ("mobilenet-v1", "naive"),
    ("mobilenet-v1", "offsets-bound"),
    ("mobilenet-v2", "naive"),
    ("mobilenet-v2", "offsets-bound"),
    ("mobilenet-v2", "objects-bound"),
    ("deeplab-v3", "offsets-bound"),
    ("posenet", "offsets-bound"),
]


@pytest.mark.parametrize("network", PAPER)
def test_these_cells_are_as_in_the_paper_and_no_others(network: str) -> None:
    matching = [(network, row) for row in PAPER[network] if measured(network).matches(row)]
    assert matching == [cell for cell in AS_IN_THE_PAPER if cell[0] == network]


def test_deeplab_has_the_paper_s_naive_total_with_channels_in_fours() -> None:
    assert footprint("deeplab-v3", channels_in_fours=True).matches("naive")


def test_inception_v3_has_a_bound_next_to_the_paper_s() -> None:
    assert measured("inception-v3").cells["offsets-bound"] == 8_297_856


@pytest.mark.parametrize("network", PAPER)
def test_every_strategy_lies_between_its_bound_and_naive(network: str) -> None:
    cells = measured(network).cells
    for name in OFFSETS:
        assert cells["offsets-bound"] <= cells[name] < cells["naive"]
    for name in OBJECTS:
        assert cells["objects-bound"] <= cells[name] < cells["naive"]


def test_the_tables_flag_what_matches_and_what_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["mobilenet-v1", "blazeface"])
    printed = capsys.readouterr().out
    assert "Table 1: shared objects" in printed
    assert "Table 2: offsets" in printed
    assert "= 19.248" in printed
    assert "(2.698)" in printed


def test_json_states_bytes_and_what_matches(capsys: pytest.CaptureFixture[str]) -> None:
    main(["mobilenet-v2", "--json"])
    (network,) = json.loads(capsys.readouterr().out)["networks"]
    assert network["num_records"] == 65
    assert network["cells"]["naive"] == 27_591_112
    assert network["paper"]["objects-bound"] == {"mib": 6.604, "matches": True}


def test_an_unknown_network_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["vgg"])
    assert "unknown network 'vgg'" in capsys.readouterr().err

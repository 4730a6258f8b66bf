"""What a machine's work costs: measured, kept by processor, read again, refused where damaged."""

import json
from dataclasses import replace

import pytest

from arenite.pipeline.base.errors import CostsFileError
from arenite.pipeline.making.calibration import measured_link
from arenite.pipeline.making.costs import (
    DESKTOP,
    FLOAT,
    INTEGER,
    MachineCosts,
    cache_file,
    in_speeds,
    table,
    with_measured,
)
from arenite.planner.programs.costs import Link
from arenite.runtime import processor_name

SLOW = replace(DESKTOP, multiply_adds_per_s=1e9, by_operator={"Conv2D": 2e9})
QUICK = replace(DESKTOP, multiply_adds_per_s=1e12)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = cache_file()
    assert path == tmp_path / "arenite" / "costs.json"
    path.parent.mkdir()
    return path


def test_a_machine_that_was_not_measured_is_assumed(cache):
    known = MachineCosts.known()
    assert "assumed" in known.words
    assert known.of(FLOAT) == DESKTOP


def test_measured_costs_are_kept_by_processor_and_found_again(cache):
    cache.write_text(with_measured(cache, "another", {FLOAT: SLOW}))
    assert "assumed" in MachineCosts.known().words
    mine = {FLOAT: SLOW, INTEGER: QUICK}
    cache.write_text(with_measured(cache, processor_name(), mine))
    known = MachineCosts.known()
    assert known.words == f"costs of {processor_name()}, measured"
    assert known.of("float32") == SLOW
    assert known.of("int8") == known.of("uint8") == QUICK
    assert known.of("int16") == SLOW
    assert json.loads(cache.read_text())["processors"].keys() == {"another", processor_name()}


def test_a_link_counts_as_measured_where_it_is_not_that_of_a_desktop(cache):
    assert MachineCosts.known().link_origin.startswith("assumed")
    cache.write_text(with_measured(cache, processor_name(), {FLOAT: SLOW}))
    assert MachineCosts.known().link_origin.startswith("assumed")
    own = replace(SLOW, link=Link(2e9, 3e9, duplex=False))
    cache.write_text(with_measured(cache, processor_name(), {FLOAT: own}))
    known = MachineCosts.known()
    assert (known.link_origin, known.of(FLOAT).link) == ("measured", own.link)
    assert in_speeds(known.of(FLOAT).link) == "2,000 MB/s out, 3,000 MB/s back"
    assert in_speeds(Link(24.5e6, 45.5e6)) == "24.5 MB/s out, 45.5 MB/s back"


def test_a_link_in_a_stated_file_is_stated(tmp_path):
    stated = tmp_path / "board.json"
    own = replace(SLOW, link=Link(2e7, 3e7))
    stated.write_text(json.dumps(table({"board": {FLOAT: own}})))
    assert MachineCosts.known(stated).link_origin == "stated"


def test_the_file_of_what_is_spilled_is_measured_where_the_runtime_has_it(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    link = measured_link()
    assert min(link.out, link.back) > 1e5
    assert not link.duplex
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError):
        measured_link()


def test_a_damaged_cache_is_refused_and_measured_anew(cache):
    cache.write_text("{")
    with pytest.raises(CostsFileError, match=r"cannot be read.*arenite calibrate"):
        MachineCosts.known()
    cache.write_text(with_measured(cache, processor_name(), {FLOAT: SLOW}))
    assert MachineCosts.known().of(FLOAT) == SLOW


def edited(**changes):
    entry = table({"board": {FLOAT: SLOW}})
    entry["processors"]["board"][FLOAT] |= changes
    return entry


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ([], "not a table of costs"),
        ({"version": 2, "processors": {}}, "not a table of costs of version 1"),
        ({"version": 1}, "incomplete costs"),
        ({"version": 1, "processors": {}}, "costs of 0 processors, one expected"),
        (table({"a": {FLOAT: SLOW}, "b": {FLOAT: SLOW}}), "costs of 2 processors, one expected"),
        (edited(bytes_per_s=0), "must be above 0"),
        (edited(bytes_per_s="quick"), "is not a number"),
        (edited(step_s=True), "is not a number"),
        (edited(by_label=[]), "incomplete costs"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path, document, why):
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(document))
    with pytest.raises(CostsFileError, match=why) as caught:
        MachineCosts.known(path)
    assert caught.value.path == path


def test_a_stated_file_comes_before_what_was_measured(cache, tmp_path):
    cache.write_text(with_measured(cache, processor_name(), {FLOAT: SLOW}))
    stated = tmp_path / "board.json"
    stated.write_text(json.dumps(table({"board": {FLOAT: QUICK}})))
    known = MachineCosts.known(stated)
    assert (known.words, known.of(FLOAT)) == ("costs of board, stated", QUICK)


def test_the_command_measures_prints_and_keeps(run, run_json, cache, monkeypatch):
    said = run_json("calibrate")
    assert said["processor"] == processor_name()
    assert said["output"] == str(cache)
    for label in (FLOAT, INTEGER):
        costs = said["costs"][label]
        assert costs["by_label"].keys() == {"Conv2D", "DepthwiseConv2D"}
        assert min(costs["by_label"].values()) > 1e6
        assert costs["step_s"] > 0
        assert costs["link"]["out"] != DESKTOP.link.out
        assert not costs["link"]["duplex"]
    assert MachineCosts.known().words.endswith(", measured")
    assert MachineCosts.known().link_origin == "measured"
    monkeypatch.setenv("TMPDIR", str(cache / "absent"))
    code, out, err = run("calibrate")
    assert code == 0
    assert "a turn, ns" in out
    assert "cannot be measured, its speed is assumed" in err
    assert MachineCosts.known().link_origin.startswith("assumed")

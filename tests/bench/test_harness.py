"""What the benchmarks share: their statistics, processes, output and exit codes."""

import json
import os
import signal
import sys

import pytest

from bench.harness import command, timed_command
from bench.harness.command import Entry, run
from bench.harness.contest import Asked, MissingInputsError, contest, option
from bench.harness.measuring import (
    ProcessError,
    Spread,
    described,
    in_fresh_process,
    interleaved,
    mean_processor_seconds,
    paired_ratios,
    peak_rss_bytes,
    this_machine,
)
from bench.harness.results import markdown, save, shown, tables, written


def test_a_spread_is_the_median_and_the_range():
    assert Spread.of([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0, 3)
    assert Spread.of([1.0, 2.0]).median == 1.5
    assert Spread.of([3.0, 1.0, 10.0]).text(".1f") == "3.0 (1.0 to 10.0)"
    assert Spread.of([3.0]).text(".1f") == "3.0"


def test_a_spread_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        Spread.of([])


def test_ratios_are_of_the_runs_of_one_round():
    # The ratio of the medians would be 1: both slowed down, but not in the same rounds.
    assert paired_ratios([1.0, 4.0, 2.0], [2.0, 8.0, 1.0]) == Spread(0.5, 0.5, 2.0, 3)
    with pytest.raises(ValueError, match="shorter"):
        paired_ratios([1.0, 2.0], [1.0])


def test_every_round_begins_with_another():
    calls = []
    measurements = {name: lambda name=name: calls.append(name) or len(calls) for name in "abc"}
    found = interleaved(measurements, 3)
    assert "".join(calls) == "abcbcacab"
    assert found == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}


def test_rounds_go_on_until_the_time_is_up():
    assert len(interleaved({"a": lambda: None}, 1, at_least_s=0.05)["a"]) > 1


def test_work_is_done_once_at_least_and_then_until_its_time_is_up():
    calls = []
    assert mean_processor_seconds(lambda: calls.append(1), 0.0) >= 0
    assert len(calls) == 1
    assert 0 < mean_processor_seconds(lambda: calls.append(1), 0.01) < 0.01
    assert len(calls) > 2


def test_work_in_a_fresh_process_has_its_own_identity_and_peak():
    assert in_fresh_process(os.getpid) != os.getpid()
    ballast = bytearray(256 << 20)
    ballast[:: 1 << 12] = b"x" * len(ballast[:: 1 << 12])
    assert in_fresh_process(peak_rss_bytes) < peak_rss_bytes() - len(ballast) // 2


def test_an_error_in_a_fresh_process_is_told_by_its_words():
    with pytest.raises(ProcessError, match="invalid literal for int"):
        in_fresh_process(int, "seven")


def test_a_crash_of_a_fresh_process_is_told_by_its_signal():
    with pytest.raises(ProcessError, match=rf"signal {signal.SIGABRT.value}$"):
        in_fresh_process(os.abort)
    with pytest.raises(ProcessError, match=r"exit code 3$"):
        in_fresh_process(os._exit, 3)


@pytest.mark.parametrize(
    ("cpuinfo", "board", "expected"),
    [
        (
            "processor : 0\nmodel name\t: AMD EPYC\nflags\t: avx2 fma avx512f avx512dq avx512bw"
            " avx512vl avx512_vnni\n",
            "",
            "AMD EPYC, 2 cores, kernels for AVX-512 with VNNI",
        ),
        ("model name : Old\nflags : avx2 fma\n", "", "Old, 2 cores, kernels for AVX2"),
        ("model name : Older\nflags : sse2\n", "", "Older, 2 cores, kernels for any processor"),
        (
            "processor : 0\nFeatures : fp asimd asimddp\n",
            "Raspberry Pi 5",
            "Raspberry Pi 5, 2 cores, kernels for NEON with dot products",
        ),
    ],
)
def test_a_machine_is_named_by_its_processor_and_kernels(cpuinfo, board, expected):
    assert str(described(cpuinfo, board, 2)) == expected


def test_a_machine_without_cpuinfo_has_a_name():
    assert described("", "", 1).processor


TITLE, OTHER = "Figures", "More figures"


@contest(
    {TITLE: {"name": "", "bytes": "", "s": ".1f"}, OTHER: {"name": "", "same": ""}},
    rounds=5,
    options=[option("--fail", action="store_true"), option("--missing", default="")],
)
def sample(asked):
    """A contest.

    Its details.
    """
    if asked.given.missing == "inputs":
        raise MissingInputsError("no instance in x; write them")
    if asked.given.missing:
        __import__(asked.given.missing)
    asked.require(not asked.given.fail, "a is small")
    yield {"name": "a", "bytes": 12_345, "s": Spread.of([1.0, 2.0])}
    yield {"table": OTHER, "name": "b", "same": asked.rounds == 5}


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """Find the contest above under every name."""
    monkeypatch.setattr(Entry, "load", lambda _self, _name: sample)


def run_sample(*arguments):
    return run("sample", Entry("here", "bytes", "none", "none"), arguments)


def test_tables_and_json_name_the_machine(capsys):
    assert run_sample() == 0
    printed = capsys.readouterr().out
    for text in (str(this_machine()), TITLE, OTHER, "12,345", "1.5 (1.0 to 2.0)", "yes"):
        assert text in printed
    assert run_sample("--json") == 0
    stated = json.loads(capsys.readouterr().out)
    assert stated["machine"]["processor"] == this_machine().processor
    assert stated["command"] == "python -m bench run sample"
    first, second = stated["tables"]
    assert first["rows"] == [["a", 12_345, {"median": 1.5, "least": 1.0, "most": 2.0, "count": 2}]]
    assert second["rows"] == [["b", True]]


def test_a_claim_that_fails_exits_with_1(capsys):
    assert run_sample("--fail") == 1
    assert "failed: a is small" in capsys.readouterr().err


def test_missing_inputs_exit_with_2_and_say_where_they_come_from(capsys):
    assert run_sample("--missing", "inputs") == 2
    assert "no instance in x; write them" in capsys.readouterr().err


def test_a_missing_package_exits_with_2_and_ours_is_a_fault(capsys):
    assert run_sample("--missing", "a_package_that_nobody_has") == 2
    assert "a_package_that_nobody_has is not installed" in capsys.readouterr().err
    with pytest.raises(ModuleNotFoundError):
        run_sample("--missing", "bench.nothing")


def test_no_round_is_a_usage_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        run_sample("--rounds", "0")
    assert "below 1" in capsys.readouterr().err


def test_a_result_is_kept_by_release_and_written_into_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "save", lambda result: save(result, tmp_path))
    assert run_sample("--save", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    older = {"contest": "sample", "tables": [{**result["tables"][0], "rows": [["old", 1, 1.0]]}]}
    (tmp_path / "0.0.9").mkdir()
    (tmp_path / "0.0.9" / "sample.json").write_text(json.dumps(older))
    found = tables(tmp_path)
    assert found.keys() == {("sample", TITLE), ("sample", OTHER)}
    page = f"# Page\n\n<!-- figures: sample: {TITLE} -->\n| old |\n\nText.\n"
    assert shown(page) == [("sample", TITLE)]
    assert written(page, found) == (
        f"# Page\n\n<!-- figures: sample: {TITLE} -->\n| name | bytes | s |\n| --- | --- | --- |\n"
        "| a | 12,345 | 1.5 (1.0 to 2.0) |\n\nText.\n"
    )
    assert "| b | yes |" in markdown(found["sample", OTHER])


def test_a_new_table_of_a_contest_leaves_its_others(tmp_path):
    machine = {"processor": "p", "num_cores": 2, "kernel_set": "k"}
    for title, cell in (("a", 1), ("b", 2), ("a", 3)):
        table = {"title": title, "columns": ["n"], "rows": [[cell]]}
        save({"contest": "c", "command": "x", "machine": machine, "tables": [table]}, tmp_path)
    assert {key[1]: each["rows"] for key, each in tables(tmp_path).items()} == {
        "a": [[3]],
        "b": [[2]],
    }


def test_the_options_of_a_contest_are_those_declared():
    given = sample.parser("sample").parse_args(["--fail"])
    assert Asked(given, None).rounds == 5
    assert given.fail


WRITES = """import sys
sum(range(10**6))
open(sys.argv[2], "w").close()
sys.exit(int(sys.argv[3]))
"""


def test_a_command_is_run_and_its_processor_time_noted(tmp_path):
    log, made = tmp_path / "log", tmp_path / "made"
    command = [sys.executable, "-c", WRITES, "-o", str(made)]
    assert timed_command.main(str(log), [*command, "0"]) == 0
    assert timed_command.main(str(log), [*command, "3"]) == 3
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    assert [each[1] for each in lines] == [str(made)] * 2
    assert all(float(seconds) > 0 for seconds, _ in lines)
    assert made.exists()

"""What the benchmarks share: their statistics, processes, output and exit codes."""

import json
import os
import signal
from dataclasses import dataclass

import pytest

from harness import (
    MissingInputsError,
    ProcessError,
    Spread,
    bench,
    emit,
    in_fresh_process,
    interleaved,
    mean_processor_seconds,
    paired_ratios,
    parser,
    peak_rss_bytes,
    table,
    this_machine,
)
from harness.machine import described


@dataclass(frozen=True)
class Row:
    name: str
    seconds: Spread


def test_a_spread_is_the_median_and_the_range():
    assert Spread.of([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0, 3)
    assert Spread.of([1.0, 2.0]).median == 1.5
    assert Spread.of([3.0, 1.0, 10.0]).text(".1f") == "3.0 (1.0-10.0)"
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


def test_tables_and_json_name_the_machine(capsys):
    rows = [Row("a", Spread.of([1.0, 2.0]))]
    shown = table("Title", ("name", "s"), [("a", "1.5")], footer=("all", "1.5"))
    emit(parser("Measure.").parse_args([]), rows, shown)
    printed = capsys.readouterr().out
    assert str(this_machine()) in printed
    assert "Title" in printed
    emit(parser("Measure.").parse_args(["--json"]), rows, shown)
    stated = json.loads(capsys.readouterr().out)
    assert stated["machine"]["processor"] == this_machine().processor
    assert stated["rows"][0]["seconds"] == {"median": 1.5, "least": 1.0, "most": 2.0, "count": 2}


def test_rows_may_have_names(capsys):
    emit(parser("Measure.").parse_args(["--json"]), {"fast": [Row("a", Spread.of([1.0]))]})
    assert json.loads(capsys.readouterr().out)["fast"][0]["name"] == "a"


def test_missing_inputs_exit_with_2_and_say_where_they_come_from(capsys):
    @bench
    def main() -> int:
        raise MissingInputsError("no instance in x; write them")

    assert main() == 2
    assert "no instance in x; write them" in capsys.readouterr().err


def test_a_missing_package_exits_with_2_and_ours_is_a_fault(capsys):
    @bench
    def foreign() -> int:
        import a_package_that_nobody_has

        return len(dir(a_package_that_nobody_has))

    assert foreign() == 2
    assert "a_package_that_nobody_has is not installed" in capsys.readouterr().err

    @bench
    def ours() -> int:
        import harness.nothing

        return len(dir(harness.nothing))

    with pytest.raises(ModuleNotFoundError):
        ours()


def test_no_round_is_a_usage_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        parser("Measure.", rounds=5).parse_args(["--rounds", "0"])
    assert "below 1" in capsys.readouterr().err

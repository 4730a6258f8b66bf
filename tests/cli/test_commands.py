"""The command as its users meet it: what it prints, where, and its exit code."""

import errno
import os
import signal
import threading
from dataclasses import dataclass
from typing import ClassVar

import onnx
import pytest

from arenite.planner import planfile
from arenite.planner.importers import csv
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.strategy import silent
from arenite.strategies import known, known_policies, table
from support.problems import StubStrategy, tiling

# Pisarchyk and Lee's worked example as half-open lifetimes.
EXAMPLE = """id,lower,upper,size
0,0,2,32
1,1,5,28
2,2,6,36
3,3,6,16
4,4,6,8
5,5,8,64
6,6,9,10
7,7,9,40
"""


@pytest.fixture
def example(tmp_path):
    path = tmp_path / "example.csv"
    path.write_text(EXAMPLE)
    return path


@pytest.fixture
def model(tmp_path):
    graph = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        tiny (float[batch, 4] x) => (float[batch, 4] y) {
            a = Relu(x)
            b = Neg(a)
            y = Add(a, b)
        }
    """)
    path = tmp_path / "tiny.onnx"
    onnx.save(graph, path)
    return path


AS_WRITTEN = ("--target", "generic", "--order", "given", "--alias", "none")
"""Each tensor in a storage of its own, in the file's own order."""


def test_plan_says_as_json_what_the_contract_promises(run_json, model):
    plan = run_json("plan", model, "--dim", "batch=2", *AS_WRITTEN)
    assert plan.items() >= {
        "model": str(model), "target": "generic", "order": "given", "num_operators": 3,
        "num_records": 4, "naive": 128, "lower_bound": 96, "height": 96, "optimal": True,
        "fallback": None,
    }.items()  # fmt: skip
    assert plan["strategy"] in known()
    assert plan["seconds"] >= 0


def test_compare_says_as_json_what_the_contract_promises(run_json, example):
    (model,) = run_json("compare", example, "--quick")["models"]
    assert (model["model"], model["naive"], model["lower_bound"]) == (str(example), 234, 124)
    heights = {result["strategy"]: result["height"] for result in model["results"]}
    assert heights["no-reuse"] == 234
    assert heights["greedy-by-size"] == 124
    assert heights["strip-packing"] == 138
    for result in model["results"]:
        assert result.keys() >= {"strategy", "kind", "height", "seconds", "optimal"}
        assert result["optimal"] == (result["height"] == 124)


def test_compare_runs_every_strategy_there_is(run_json, example):
    (model,) = run_json("compare", example, "--time-limit", "1")["models"]
    assert [result["strategy"] for result in model["results"]] == list(known())


def test_strategies_lists_the_table(run, run_json):
    assert [each["name"] for each in run_json("strategies")["strategies"]] == list(known())
    code, out, _ = run("strategies")
    assert code == 0
    assert all(name in out for name in known())
    policies = run_json("strategies")["policies"]
    assert [each["name"] for each in policies] == list(known_policies())
    assert {each["name"] for each in policies if not each["exact"]} == {"gist-fp16"}
    assert all(name in out for name in known_policies())


def test_inspect_names_what_binds(run, run_json, model):
    code, out, _ = run("inspect", model, "--dim", "batch=1", *AS_WRITTEN)
    assert code == 0
    assert "working set binds" in out
    assert run_json("inspect", model, "--dim", "batch=1", *AS_WRITTEN)["lower_bound"] == 48


def test_inspect_says_what_a_rewrite_would_bring(run, run_json, model):
    found = run_json("inspect", model, "--dim", "batch=1", *AS_WRITTEN)
    (remedy,) = found["remedies"]
    assert (remedy["options"], remedy["lower_bound"]) == ("--alias in-place", 32)
    assert "working set binds" in remedy["advice"]
    assert sum(found["sharing"]["shared"].values()) > 0
    _, out, _ = run("inspect", model, "--dim", "batch=1", *AS_WRITTEN)
    assert "--alias in-place" in out
    assert "33.3 % less" in out
    assert run_json("inspect", model, "--dim", "batch=1", *AS_WRITTEN[:2])["remedies"] == []


def test_kinds_of_sharing_are_named_one_by_one(run, run_json, model):
    as_written = ("plan", model, "--dim", "batch=1", "--target", "generic", "--alias")
    assert run_json(*as_written, "in-place,views")["aliases"] == ["views", "in-place"]
    everything = run_json(*as_written, "all")["aliases"]
    assert "concat" in everything
    assert "overlap" not in everything
    assert run_json(*as_written, "all,overlap")["aliases"] == [*everything, "overlap"]
    code, _, err = run(*as_written, "views,none")
    assert code == 2
    assert "'none' is not one of" in err


def test_inspect_says_why_no_more_storage_is_shared(run, run_json, model):
    found = run_json("inspect", model, "--dim", "batch=1", *AS_WRITTEN)
    assert found["sharing"]["shared"] == {"in-place": 1, "reuse-inputs": 1}
    _, out, _ = run("inspect", model, "--dim", "batch=1", "--target", "generic")
    assert "could share storage" in out


def test_a_plan_file_is_written_verified_and_bound_to_its_model(run, model, tmp_path):
    path = tmp_path / "plan.json"
    options = ("--dim", "batch=2", "--alias", "all", "--order", "optimal")
    code, out, _ = run("plan", model, *options, "-o", path)
    assert code == 0
    assert str(path) in out.replace("\n", "")
    assert planfile.read(path).plan.height == 64
    assert run("verify", path)[0] == 0
    code, out, _ = run("verify", path, model)
    assert (code, out.startswith("valid: ")) == (0, True)


def test_verify_refuses_a_plan_of_another_model(run, model, example, tmp_path):
    path = tmp_path / "plan.json"
    run("plan", model, "--dim", "batch=2", "-o", path)
    code, out, err = run("verify", path, example)
    assert (code, out) == (1, "")
    assert "made for 'tiny.onnx'" in err


def test_the_same_plan_gives_the_same_file(run, example, tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    for path in (first, second):
        run("plan", example, "-o", path)
    assert first.read_bytes() == second.read_bytes()


def test_results_go_to_standard_output_and_errors_to_standard_error(run, example, tmp_path):
    code, out, err = run("compare", example, tmp_path / "absent.onnx", "--quick")
    assert code == 1
    assert "greedy-by-size" in out
    assert err.startswith("error: ")
    assert "absent.onnx" in err
    assert "absent.onnx" not in out


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (None, "absent.onnx", "absent.onnx"),
        (b"garbage", "broken.onnx", "broken.onnx"),
        (b"\x00\x00\x00\x1cTFL3garbage", "broken.tflite", "broken.tflite"),
        (b"id,lower,upper,size\na,2,1,3\n", "broken.csv", "line 2"),
        (b"", "model.bin", "known: .onnx"),
    ],
)
def test_a_wrong_model_is_one_line_and_exit_code_1(run, tmp_path, content, name, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    output = tmp_path / "plan.json"
    code, out, err = run("plan", path, "-o", output)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert message in err
    assert not output.exists()


def test_memory_that_the_machine_has_not_is_one_line_and_exit_code_1(
    refused, example, monkeypatch
):
    def takes_all(_path):
        raise MemoryError(said)

    monkeypatch.setattr(csv, "read_csv", takes_all)
    said = "Unable to allocate 8.00 TiB"
    assert refused("plan", example) == f"error: out of memory: {said}\n"
    said = ""
    assert refused("plan", example) == "error: out of memory\n"


def test_free_dimensions_are_named_with_what_to_write(run, model):
    code, _, err = run("plan", model)
    assert code == 1
    assert "'batch'" in err
    assert "--dim" in err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("plan",),
        ("plan", "m.csv", "--align", "24"),
        ("plan", "m.csv", "--capacity", "64 parsecs"),
        ("plan", "m.csv", "--dim", "batch"),
        ("plan", "m.csv", "--dim", "batch=-1"),
        ("plan", "m.csv", "--shape", "x=1x"),
        ("plan", "m.csv", "--order", "random"),
        ("plan", "m.csv", "--target", "toaster"),
        ("plan", "m.csv", "--time-limit", "-1"),
        ("plan", "m.csv", "--seed", "x"),
        ("fly",),
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "Usage: arenite" in err


def test_an_unknown_strategy_lists_the_known(run, example):
    code, _, err = run("plan", example, "--strategy", "magic")
    assert code == 1
    assert "greedy-by-size" in err


def test_a_capacity_below_the_bound_is_impossible_and_writes_nothing(run, example, tmp_path):
    path = tmp_path / "plan.json"
    code, _, err = run("plan", example, "--capacity", "123", "-o", path)
    assert code == 1
    assert "no plan fits 123 B" in err
    assert not path.exists()


def test_a_capacity_that_a_strategy_misses_is_not_called_impossible(run, example):
    code, _, err = run("plan", example, "--strategy", "strip-packing", "--capacity", "130")
    assert code == 1
    assert "one may exist" in err
    assert "Raise --capacity or try --strategy best" in err
    assert run("plan", example, "--capacity", "124")[0] == 0


def saved(folder, problem):
    """Return a file of the records."""
    path = folder / "problem.csv"
    rows = (f"{r.name},{r.start},{r.end},{r.size}" for r in problem.records)
    path.write_text("\n".join(("id,lower,upper,size", *rows)))
    return path


def test_best_searches_until_the_capacity_is_met(run_json, tmp_path):
    model = saved(tmp_path, tiling(60, 40, 1000, seed=1))
    assert run_json("plan", model, "--capacity", "1000")["height"] == 1000


@pytest.mark.usefixtures("without_core")
def test_without_the_native_core_best_takes_what_fits_and_advises_no_more_time(
    run_json, refused, tmp_path
):
    model = saved(tmp_path, tiling(60, 40, 1000, seed=1))
    height = run_json("plan", model)["height"]
    assert run_json("plan", model, "--capacity", height)["height"] == height > 1000
    said = refused("plan", model, "--capacity", height - 1, "--time-limit", "5")
    assert "one may exist" in said
    assert "Raise --capacity; it cannot search for a lower one, since the exact search" in said
    assert "needs the native core, which was not built" in said
    assert "a longer" not in said


def test_more_time_is_advised_only_where_it_helps(run, tmp_path):
    model = saved(tmp_path, tiling(200, 40, 1_000_000_007, seed=1))
    code, _, err = run("plan", model, "--capacity", "1000000007", "--time-limit", "0.2")
    assert code == 1
    assert "Raise --capacity or try a longer --time-limit" in err


def test_a_folder_that_does_not_exist_is_noticed_before_the_work(run, example, tmp_path):
    code, out, err = run("plan", example, "-o", tmp_path / "absent" / "plan.json")
    assert (code, out) == (1, "")
    assert "absent" in err


def test_the_map_shows_time_across_and_addresses_up(run, example):
    code, out, _ = run("plan", example, "--map")
    assert code == 0
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())
    assert "124 B ┤" in out
    assert "step" in out
    # Record 5, the largest, is A and record 0 is D; both lie at 0, one after the other.
    lines = out.splitlines()
    ground = next(index for index, line in enumerate(lines) if line.strip().startswith("0 └"))
    cells = lines[ground - 1].split("│")[1]
    assert cells.strip("·").replace("·", "").rstrip("A").strip("D") == ""
    assert 0 < cells.count("D") < cells.count("A")


def test_the_map_leaves_out_the_middle_of_long_names(run, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(EXAMPLE.replace("5,5,8,64", f"{'head' * 30}{'tail' * 30},5,8,64"))
    code, out, _ = run("plan", path, "--map")
    assert code == 0
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())
    assert "headheadheadhea…tailtailtailtail" in out


def test_version_and_help(run):
    assert run("--version")[0] == 0
    code, out, _ = run("-h")
    assert code == 0
    assert all(command in out for command in ("inspect", "plan", "verify", "compare"))


@dataclass(frozen=True)
class Endless(StubStrategy):
    """Searches until it is stopped; interrupts itself as a user would."""

    name: ClassVar[str] = "endless"
    quick: ClassVar[bool] = False

    def __call__(self, problem):
        return self.search(problem, silent)

    def search(self, problem, watch):
        offsets, top = [], 0
        for record in problem.records:
            offsets.append(top)
            top += record.size
        best = Plan.of(problem, tuple(offsets), self.name)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        while not watch(best, problem.lower_bound):
            pass
        return best


@pytest.fixture
def endless(monkeypatch):
    monkeypatch.setattr(table, "STRATEGIES", (*table.STRATEGIES, Endless()))
    known.cache_clear()
    yield
    known.cache_clear()


@pytest.mark.usefixtures("endless")
def test_ctrl_c_keeps_the_best_plan_so_far(run, example, tmp_path):
    path = tmp_path / "plan.json"
    code, out, err = run("plan", example, "--strategy", "endless", "-o", path)
    assert code == 0
    assert "the best plan so far is kept" in err
    assert "interrupted" in out
    assert planfile.read(path).plan.height == 234


def test_an_optimum_of_the_given_order_is_not_called_one_of_all(run, model, example):
    code, out, _ = run("plan", model, "--dim", "batch=2", *AS_WRITTEN)
    assert code == 0
    assert "reached: optimal in the given order" in out
    for words in ((model, "--dim", "batch=2"), (example,)):  # records alone have no order
        code, out, _ = run("plan", *words)
        assert code == 0
        assert "in the given order" not in out


def test_a_capacity_from_the_name_of_an_instance_is_said(run, tmp_path):
    instance = tmp_path / "model.100.csv"
    instance.write_text("id,lower,upper,size\na,0,2,64\nb,1,3,64\n")
    code, _, err = run("plan", instance)
    assert code == 1
    assert "capacity of 100 B comes from the file's name" in err
    code, out, err = run("plan", instance, "--capacity", "200")
    assert (code, err) == (0, "")
    assert "200 B" in out


def test_an_error_of_the_system_has_no_number(run, tmp_path, monkeypatch):
    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("arenite.cli.commands.plan.plan_model", full)
    code, out, err = run("plan", tmp_path / "m.csv")
    assert (code, out, err) == (1, "", "error: No space left on device\n")

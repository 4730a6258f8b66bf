"""Many models: files, baselines, folders, processes, and what goes wrong with them."""

import csv
import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from random import Random

import pytest

from arenite.cli.commands.compare import command
from arenite.cli.main import main
from arenite.planner import Plan
from arenite.strategies import known
from support.problems import StubStrategy
from support.tiny_chains import dense_chain, running_sum

GOOD = "id,lower,upper,size\na,0,2,64\nb,1,3,32\n"
GROWN = "id,lower,upper,size\na,0,2,66\nb,1,3,32\n"


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    (folder / "below").mkdir(parents=True)
    (folder / "a.csv").write_text(GOOD)
    (folder / "below" / "b.tflite").write_bytes(dense_chain())
    (folder / "notes.txt").write_text("no model")
    return folder


@pytest.fixture
def compare(capsys):
    def compare(*arguments):
        code = main(["compare", "--quick", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return compare


def heights(document):
    return {
        model["model"]: {each["strategy"]: each["height"] for each in model["results"]}
        for model in document["models"]
    }


@pytest.fixture
def baseline(tmp_path, compare):
    model = tmp_path / "model.csv"
    model.write_text(GOOD)
    path = tmp_path / "old.json"
    path.write_text(compare(model, "--json")[1])
    return model, path


def test_a_folder_stands_for_the_models_in_and_below_it(compare, models):
    code, out, _ = compare(models, "--json")
    assert code == 0
    assert [*heights(json.loads(out))] == [
        str(models / "a.csv"),
        str(models / "below" / "b.tflite"),
    ]


def test_one_broken_model_does_not_stop_the_others(compare, models):
    (models / "ab.onnx").write_bytes(b"broken")
    code, out, err = compare(models, "--json", "--jobs", 2)
    document = json.loads(out)
    assert code == 1
    assert len(document["models"]) == 2
    assert [each["model"] for each in document["failed"]] == [str(models / "ab.onnx")]
    assert "ab.onnx" in err


def test_a_folder_without_models_is_said(compare, tmp_path):
    code, _, err = compare(tmp_path)
    assert code == 1
    assert "there is no model in this folder or below" in err


def test_an_unwritable_page_is_refused_before_the_work(compare, models, tmp_path):
    code, out, err = compare(models, "-o", tmp_path / "absent" / "report.html")
    assert code == 1
    assert out == ""
    assert "report.html" in err


class Failing(StubStrategy):
    """Raises what no strategy should."""

    name = "failing"

    def __call__(self, _problem):
        raise TypeError("unexpected")


class Wrong(StubStrategy):
    """Lays all records at 0."""

    name = "wrong"

    def __call__(self, problem):
        return Plan.of(problem, (0,) * len(problem.records), self.name)


class Forgetful(StubStrategy):
    """Returns nothing."""

    name = "forgetful"

    def __call__(self, _problem):
        return None


def test_a_strategy_that_fails_is_named_and_the_others_go_on(compare, baseline, monkeypatch):
    others = {each.name: each for each in (Failing(), Wrong(), Forgetful())}
    monkeypatch.setattr(command, "known", lambda: others | known())
    code, out, _ = compare(baseline[0], "--json")
    (model,) = json.loads(out)["models"]
    reasons = {each["strategy"]: each["reason"] for each in model["skipped"]}
    assert code == 1
    assert reasons["failing"] == "strategy 'failing' failed: TypeError: unexpected"
    assert reasons["wrong"].startswith("strategy 'wrong' returned an invalid plan: ")
    assert "NoneType" in reasons["forgetful"]
    assert "greedy-by-size" in {each["strategy"] for each in model["results"]}


def test_files_are_left_alone_if_no_model_is_compared(compare, tmp_path):
    files = {"-o": "r.html", "--csv": "r.csv", "--markdown": "r.md", "--trace": "r.json"}
    for name in files.values():
        (tmp_path / name).write_text("good")
    options = [part for flag, name in files.items() for part in (flag, tmp_path / name)]
    code, _, err = compare(tmp_path / "nosuch.onnx", *options)
    assert code == 1
    assert all((tmp_path / name).read_text() == "good" for name in files.values())
    assert "r.html" in err
    code, _, _ = compare(tmp_path / "nosuch.onnx", "--policies", "75%", *options[:2])
    assert code == 1
    assert (tmp_path / "r.html").read_text() == "good"


@pytest.mark.parametrize("name", ["x.pdf", "x"])
def test_a_report_that_is_not_named_html_is_wrong_usage(compare, models, tmp_path, name):
    code, _, err = compare(models, "-o", tmp_path / name)
    assert code == 2
    assert "suffix .html" in err
    assert not (tmp_path / name).exists()


def test_the_difference_to_an_equal_baseline_is_nothing(compare, baseline):
    model, old = baseline
    code, out, _ = compare(model, "--baseline", old, "--fail-over", "0%")
    assert code == 0
    assert "grew too much" not in out


def test_a_grown_arena_fails_and_says_by_how_much(compare, baseline):
    model, old = baseline
    model.write_text(GROWN)
    code, out, err = compare(model, "--baseline", old, "--fail-over", "2%")
    assert code == 1
    assert "grew too much" in out
    assert "grew from 96 B to" in err


@pytest.mark.parametrize(
    ("before", "shown"),
    [(96, ["98", "96", "2.1 %, too much"]), (98, ["98", "98", "0.0 %"]),
     (196, ["98", "196", "-50.0 %"]), (None, ["98", "-", "new"])],
)  # fmt: skip
def test_the_markdown_names_folders_and_says_what_grew(compare, tmp_path, before, shown):
    model, old, text = (tmp_path / name for name in ("below/m.csv", "old.json", "t.md"))
    model.parent.mkdir()
    model.write_text(GROWN)
    heights = {"gone.csv": 64} | ({} if before is None else {str(model): before})
    models = [{"model": name, "results": [{"height": size}]} for name, size in heights.items()]
    old.write_text(json.dumps({"models": models}))
    compare(model, "--baseline", old, "--fail-over", "2%", "--markdown", text)
    table = html.unescape(text.read_text().replace("**", "")).partition("\n<details>")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()[2:]]
    assert [row[1:5] for row in rows] == [
        [str(model), *shown],
        ["gone.csv", "-", "64", "not compared"],
    ]


def test_growth_within_what_is_allowed_passes(compare, baseline):
    model, old = baseline
    model.write_text(GROWN)
    assert compare(model, "--baseline", old, "--fail-over", "90%")[0] == 0


def test_a_baseline_of_other_models_fails(compare, baseline, models):
    _, old = baseline
    code, _, err = compare(models, "--baseline", old, "--fail-over", "2%")
    assert code == 1
    assert "has none of these models" in err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "no list 'models'"),
        ('{"models": [{}]}', "no text 'model'"),
        ('{"models": [{"model": "m", "results": []}]}', "no 'results'"),
        ('{"models": [{"model": "m", "results": [{"height": -1}]}]}', "'height' in bytes"),
    ],
)
def test_a_bad_baseline_is_named_with_what_is_wrong(compare, baseline, text, reason):
    model, old = baseline
    old.write_text(text)
    code, _, err = compare(model, "--baseline", old)
    assert code == 1
    assert reason in err


@pytest.mark.parametrize("percent", ["many", "-1%", "inf"])
def test_an_unknown_percentage_is_wrong_usage(compare, baseline, percent):
    model, old = baseline
    code, _, err = compare(model, "--baseline", old, "--fail-over", percent)
    assert code == 2
    assert "is not a percentage" in err


def test_allowed_growth_without_a_baseline_is_wrong_usage(compare, baseline):
    assert compare(baseline[0], "--fail-over", "2%")[0] == 2


def test_the_tables_and_the_trace_agree_with_the_json(compare, models, tmp_path):
    table, text, trace = (tmp_path / name for name in ("t.csv", "t.md", "t.json"))
    _, out, _ = compare(models, "--json", "--csv", table, "--markdown", text, "--trace", trace)
    expected = heights(json.loads(out))
    rows = list(csv.DictReader(table.read_text().splitlines()))
    found = {name: {} for name in expected}
    for row in rows:
        found[row["model"]][row["strategy"]] = int(row["height"])
    assert found == expected
    assert text.read_text().startswith("| model | arena, B |")
    events = json.loads(trace.read_text())["traceEvents"]
    tops = {}
    for event in events:
        if event["name"] == "highest address":
            tops[event["pid"]] = max(tops.get(event["pid"], 0), event["args"]["bytes"])
    assert [*tops.values()] == [min(each.values()) for each in expected.values()]


def test_what_people_see_fits_eighty_columns(models):
    result = subprocess.run(
        [sys.executable, "-m", "arenite", "compare", "--quick", str(models)],
        env=os.environ | {"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm-256color"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", result.stdout)
    assert plain != result.stdout
    assert max(map(len, plain.splitlines())) <= 80


def test_ctrl_c_keeps_the_models_that_are_done_and_the_best_plans_so_far(tmp_path):
    easy, hard, last = (tmp_path / name for name in ("easy.csv", "hard.csv", "last.csv"))
    easy.write_text(GOOD)
    last.write_text(GOOD)
    random = Random(0)
    births = [random.randrange(500) for _ in range(3000)]
    hard.write_text(
        "id,lower,upper,size\n"
        + "".join(
            f"{index},{birth},{birth + random.randrange(1, 60)},{random.randrange(1, 10**6)}\n"
            for index, birth in enumerate(births)
        )
    )
    for delay in (0.5, 2, 8, 32):  # until the search for the second model has begun
        process = subprocess.Popen(
            [sys.executable, "-m", "arenite", "compare", "--strategy", "optimal", "--jobs", "1",
             "--time-limit", "600", *map(str, (easy, hard, last))],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "easy.csv"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        shown, errors = process.communicate(timeout=60)
        if "hard.csv: interrupted before its plan" not in errors:
            break
    assert process.returncode == 1
    assert "hard.csv" in shown
    assert "last.csv: interrupted" in errors
    assert "easy.csv: interrupted" not in errors
    assert "hard.csv: interrupted" not in errors
    assert "Traceback" not in errors


def test_a_peer_that_keeps_its_own_placement_says_nothing_of_it(tmp_path, capfd):
    pytest.importorskip("ai_edge_litert", reason="the extra 'litert' is not installed")
    (tmp_path / "sum.tflite").write_bytes(running_sum())
    assert main(["compare", "--quick", "--peers", str(tmp_path / "sum.tflite")]) == 0
    assert "Warning" not in capfd.readouterr().err

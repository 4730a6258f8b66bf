"""`arenite compare --policies`: policies side by side."""

import itertools
import json
import re

import onnx
import pytest
from onnx import TensorProto, helper

from arenite.cli.commands.compare import policy_page
from arenite.cli.main import main
from arenite.pipeline.making.costs import FLOAT, cache_file, processor_name, with_measured
from arenite.planner.programs.costs import Costs, Link
from arenite.planner.programs.policy import is_exact
from arenite.strategies import known_policies


@pytest.fixture
def step(tmp_path):
    """A chain whose backward half reads what the forward half made, as a file."""
    nodes, size = [], 10
    for index in range(size):
        nodes.append(helper.make_node("Sigmoid", [f"a{index}"], [f"a{index + 1}"]))
    nodes.append(helper.make_node("Neg", [f"a{size}"], [f"g{size}"]))
    for index in reversed(range(size)):
        nodes.append(helper.make_node("Mul", [f"g{index + 1}", f"a{index + 1}"], [f"g{index}"]))
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1024]) for name in ("a0", "g0")
    ]
    graph = helper.make_graph(nodes, "step", ends[:1], ends[1:])
    path = tmp_path / "step.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture
def compare(capsys):
    def compare(*arguments):
        code = main(["compare", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return compare


def test_every_exact_policy_is_compared_at_every_budget(compare, step):
    code, out, _ = compare(step, "--policies", "75%,least", "--json")
    assert code == 0
    (model,) = json.loads(out)["models"]
    names = {each.name for each in known_policies().values() if is_exact(each)}
    assert {each["policy"] for each in model["results"]} == names | {"bands"}
    assert [*dict.fromkeys(each["budget"] for each in model["results"])] == ["75%", "least"]
    for each in model["results"]:
        if each["peak"] is None:
            assert each["reason"]
        elif each["limit"] is not None:
            assert each["peak"] <= each["limit"] == model["peak"] * 3 // 4
    assert any(each["num_repeated"] for each in model["results"])
    assert any(each["bytes_out"] for each in model["results"])
    assert not any(each["wrong"] for each in model["results"])


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Keep costs of this machine as `arenite calibrate` does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = cache_file()
    path.parent.mkdir(parents=True)
    costs = Costs(2e9, 3e9, Link(4e8, 5e8, duplex=False))
    path.write_text(with_measured(path, processor_name(), {FLOAT: costs}))


def whose(compare, step, *options):
    chosen = ("--policies", "75%", "--strategy", "sqrt", "--no-bands")
    code, out, _ = compare(step, *chosen, "--json", *options)
    assert code == 0
    (model,) = json.loads(out)["models"]
    return model["costs"], model["link"]["out_bytes_per_s"], model["link"]["origin"]


def test_it_says_whose_link_it_goes_by(compare, step, measured):
    here = f"costs of {processor_name()}, measured"
    assert whose(compare, step) == whose(compare, step, "--machine", "here")
    assert whose(compare, step) == (here, 4e8, "measured")
    assert whose(compare, step, "--link", "7MB/s") == (here, 7e6, "stated")
    assert whose(compare, step, "--machine", "sd") == ("speeds of sd, stated", 24.5e6, "stated")
    _, out, _ = compare(step, "--policies", "75%", "--strategy", "sqrt", "--no-bands")
    assert "link 400 MB/s out, 500 MB/s back, measured" in " ".join(out.split())


def test_a_machine_that_was_not_measured_is_a_stated_one(compare, step):
    assert whose(compare, step) == ("speeds of pcie, stated", 12e9, "stated")
    words, _, origin = whose(compare, step, "--machine", "here")
    assert words.startswith("costs of a core of a desktop, assumed")
    assert origin.startswith("assumed")


def test_a_policy_that_rounds_is_compared_where_it_is_named_and_says_so(compare, step):
    chosen = ("--policies", "75%", "--no-bands", "--strategy", "gist-fp16")
    code, out, _ = compare(step, *chosen, "--json")
    assert code == 0
    (model,) = json.loads(out)["models"]
    (result,) = model["results"]
    assert result["rounds"]
    assert not result["wrong"]
    assert result["peak"] <= result["limit"]
    _, out, _ = compare(step, *chosen)
    assert "not the same to the bit" in " ".join(out.split())


def test_figures_of_assumed_zeros_say_so(compare, step, tmp_path):
    chosen = (step, "--policies", "75%", "--no-bands", "--strategy", "cdma")
    _, out, _ = compare(*chosen, "-o", tmp_path / "page.html")
    for text in (" ".join(out.split()), (tmp_path / "page.html").read_text()):
        assert "assume that 60 % of the results of clamps are zeros" in text
    (model,) = json.loads(compare(*chosen, "--json")[1])["models"]
    assert "programs that 'arenite fit' writes move all bytes" in model["results"][0]["assumes"]


def test_a_slow_link_makes_swaps_dear(compare, step):
    times = []
    for link in ("1TB/s", "1MB/s:2MB/s"):
        arguments = (step, "--policies", "60%", "--strategy", "modnn", "--json")
        _, out, _ = compare(*arguments, "--link", link.replace("1TB", "1000GB"))
        (result,) = json.loads(out)["models"][0]["results"]
        times.append(result["extra_time"])
    assert times[0] < times[1]


def test_the_tables_say_what_binds_and_who_is_quickest(compare, step):
    code, out, _ = compare(step, "--policies", "60%", "--quick")
    assert code == 0
    assert "Carried tensors bind" in out
    assert re.search(r"^\*  *greedy-chains", out, re.MULTILINE)
    assert "checkmate" not in out


def test_the_page_draws_the_frontier_and_holds_all_it_needs(compare, step, tmp_path):
    page = tmp_path / "page.html"
    hostile = step.rename(step.with_name("<b>step&.onnx"))
    code, _, _ = compare(hostile, "--policies", "75%,60%", "-o", page, "--quick")
    text = page.read_text()
    assert code == 0
    assert "<svg" in text
    assert "polyline" in text
    assert "<b>step" not in text
    assert "http" not in text
    assert "--accent" in text  # the style of all pages
    assert "policies compared" in text


@pytest.mark.parametrize("most", [0.0, 0.02, 0.4, 9.0, 22.6, 400.0])
def test_labels_of_the_axis_of_time_reach_the_slowest_and_do_not_overlap(most):
    ticks = policy_page.time_ticks(most)
    assert ticks[0] == 0
    assert most <= ticks[-1] <= max(0.01, 4 * most)
    places = [policy_page._up(tick, ticks[-1]) for tick in ticks]
    assert all(low - high >= 17 for low, high in itertools.pairwise(places))


def test_records_without_steps_are_said(compare, tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,lower,upper,size\na,0,2,64\n")
    code, _, err = compare(path, "--policies", "50%")
    assert code == 1
    assert "policies need the steps of a model" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--policies", "never"), "is not a size"),
        (("--policies", "75%", "--link", "quick"), "is not a speed"),
        (("--policies", "75%", "--peers"), "--peers does not go with --policies"),
        (("--policies", "75%", "--target", "tflm"), "compares the graph as written"),
    ],
)
def test_what_does_not_go_is_a_usage_error(compare, step, arguments, said):
    code, _, err = compare(step, *arguments)
    assert code == 2
    assert said in err


def test_an_unknown_policy_lists_the_known_ones(compare, step):
    code, _, err = compare(step, "--policies", "75%", "--strategy", "greedy-by-size")
    assert code == 1
    assert "greedy-chains" in err

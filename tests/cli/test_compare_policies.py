"""`arenite compare --budget`: policies side by side."""

import json
import re

import onnx
import pytest
from onnx import TensorProto, helper

from arenite.cli.main import main
from arenite.strategies.fit import POLICIES


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


def test_every_policy_is_compared_at_every_budget(compare, step):
    code, out, _ = compare(step, "--budget", "75%,least", "--json")
    assert code == 0
    (model,) = json.loads(out)["models"]
    names = {each.name for each in POLICIES}
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


def test_a_slow_link_makes_swaps_dear(compare, step):
    times = []
    for link in ("1TB/s", "1MB/s:2MB/s"):
        arguments = (step, "--budget", "60%", "--strategy", "modnn", "--json")
        _, out, _ = compare(*arguments, "--link", link.replace("1TB", "1000GB"))
        (result,) = json.loads(out)["models"][0]["results"]
        times.append(result["extra_time"])
    assert times[0] < times[1]


def test_the_tables_say_what_binds_and_who_is_quickest(compare, step):
    code, out, _ = compare(step, "--budget", "60%", "--quick")
    assert code == 0
    assert "Carried tensors bind" in out
    assert re.search(r"^\*  *greedy-chains", out, re.MULTILINE)
    assert "checkmate" not in out


def test_the_page_draws_the_frontier_and_holds_all_it_needs(compare, step, tmp_path):
    page = tmp_path / "page.html"
    hostile = step.rename(step.with_name("<b>step&.onnx"))
    code, _, _ = compare(hostile, "--budget", "75%,60%", "-o", page, "--quick")
    text = page.read_text()
    assert code == 0
    assert "<svg" in text
    assert "polyline" in text
    assert "<b>step" not in text
    assert "http" not in text


def test_records_without_steps_are_said(compare, tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("id,lower,upper,size\na,0,2,64\n")
    code, _, err = compare(path, "--budget", "50%")
    assert code == 1
    assert "no steps that could run again" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--budget", "never"), "is not a size"),
        (("--budget", "75%", "--link", "quick"), "is not a speed"),
        (("--budget", "75%", "--peers"), "--peers does not go with --budget"),
        (("--budget", "75%", "--target", "tflm"), "compares the graph as written"),
    ],
)
def test_what_does_not_go_is_a_usage_error(compare, step, arguments, said):
    code, _, err = compare(step, *arguments)
    assert code == 2
    assert said in err


def test_an_unknown_policy_lists_the_known_ones(compare, step):
    code, _, err = compare(step, "--budget", "75%", "--strategy", "greedy-by-size")
    assert code == 1
    assert "greedy-chains" in err

"""`arenite compress` as its users meet it."""

import json
from math import inf

import numpy as np
import onnx
import pytest

from arenite.cli.commands.compress import command
from arenite.cli.commands.compress.scan_file import ScanFile
from arenite.cli.main import main
from arenite.compression import DENSITIES, Sensitivity
from arenite.runtime import Session
from support.running import assert_same, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = """(float[1,6,12,12] x) => (y)
<float[32,6,3,3] a, float[32] b, float[4608,96] c, float[96,4] tiny>
{ p = Conv<pads=[1,1,1,1]>(x, a, b) r = Relu(p) w = Flatten(r) v = Gemm(w, c)
  y = MatMul(v, tiny) }"""


@pytest.fixture
def path(tmp_path):
    return save(tmp_path, with_random_weights(parse(NETWORK)))


def dataset(folder, **arrays):
    path = folder / "data.npz"
    np.savez(path, **arrays)
    return path


def test_a_model_with_shared_weights_is_written_and_told_of(path, run_json, tmp_path):
    output = tmp_path / "small.onnx"
    said = run_json("compress", path, "-o", output, "--bits", "4", "--fc-bits", "3")
    assert said["output"] == str(output)
    assert said["file_bytes"] == output.stat().st_size
    assert {each["name"]: each["bits"] for each in said["layers"]} == {"a": 4, "c": 3}
    assert said["coded_bytes"] == sum(each["coded_bytes"] for each in said["layers"])
    assert said["coded_bytes"] < said["dense_bytes"] / 7
    assert [each["stage"] for each in said["stages"]] == ["original", "shared"]
    assert said["stages"][0]["error"] == 0 < said["stages"][1]["error"]
    tensors = {each.name: each for each in onnx.load(output).graph.initializer}
    assert np.unique(onnx.numpy_helper.to_array(tensors["c"])).size <= 8
    assert np.unique(onnx.numpy_helper.to_array(tensors["tiny"])).size > 256


def test_weights_in_blocks_are_written_and_told_of(path, run_json, tmp_path):
    output = tmp_path / "blocks.onnx"
    said = run_json("compress", path, "-o", output, "--bits", "4", "--block", "64")
    assert said["output"] == str(output)
    assert [each["name"] for each in said["layers"]] == ["c"]
    assert said["layers"][0]["bytes"] == 4608 * 96 // 2 + 2 * 4608 * 96 // 64
    assert 0 < said["error"] < 0.2


def test_an_onnx_file_is_said_to_hold_no_code(path, run, tmp_path):
    """The coding is what a program file holds; the format of .onnx has none."""
    for name, is_said in (("small.onnx", True), ("small.arena", False)):
        code, out, err = run("compress", path, "-o", tmp_path / name)
        assert (code, err) == (0, "")
        assert ("times smaller in a program file, -o NAME.arena" in out) is is_said


def test_a_program_runs_as_the_model_with_the_same_weights(path, run_json, tmp_path):
    model, program, streamed = (tmp_path / name for name in ("m.onnx", "m.arena", "s.arena"))
    options = ("--density", "30%", "--bits", "5")
    run_json("compress", path, "-o", model, *options)
    run_json("compress", path, "-o", program, *options)
    run_json("compress", path, "-o", streamed, *options, "--weights", "90%")
    assert program.stat().st_size < model.stat().st_size / 4
    for file in (program, streamed):
        with Session(file) as session:
            feeds = random_feeds(session)
            assert_same(session.run(feeds), reference_outputs(model, feeds))


def test_layers_may_differ(path, run_json, tmp_path):
    said = run_json(
        "compress", path, "-o", tmp_path / "o.onnx",
        "--layer", "c:density=0.1,bits=2", "--layer", "a:bits=0",
    )  # fmt: skip
    layers = {each["name"]: each for each in said["layers"]}
    assert layers["c"]["kept"] == round(0.1 * layers["c"]["weights"])
    assert layers["a"]["bits"] == 0
    assert layers["a"]["layout"] is None


def test_accuracy_is_told_where_labels_are_given(path, run, run_json, tmp_path):
    inputs = np.random.default_rng(0).standard_normal((6, 6, 12, 12)).astype(np.float32)
    labels = [int(reference_outputs(path, {"x": each[None]})["y"].argmax()) for each in inputs]
    data = dataset(tmp_path, x=inputs, labels=np.array(labels))
    said = run_json("compress", path, "-o", tmp_path / "o.onnx", "--evaluate", data)
    assert said["stages"][0]["accuracy"] == 1
    code, out, _ = run("compress", path, "-o", tmp_path / "o.onnx", "--evaluate", data)
    assert code == 0
    assert "100.0 % correct on data.npz" in out


def test_the_table_names_every_layer_and_what_is_written(path, run, tmp_path):
    code, out, err = run("compress", path, "-o", tmp_path / "o.arena", "--density", "0.5")
    assert (code, err) == (0, "")
    assert "32x6x3x3" in out
    assert "50.0 % kept" in out
    assert "pruned without retraining" in out
    assert "o.arena" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--density", "0.5", "--total-density", "0.5"),
        ("--density", "0"),
        ("--density", "150%"),
        ("--bits", "9"),
        ("--layer", "c"),
        ("--layer", "c:size=3"),
        ("--layer", "z:bits=4"),
        ("--weights", "50%"),
        ("--weights", "nothing"),
        ("--block", "48"),
        ("--block", "32", "--bits", "5"),
        ("--block", "32", "--density", "0.5"),
    ],
)
def test_wrong_usage_is_told_and_nothing_written(path, run, tmp_path, arguments):
    output = tmp_path / "o.onnx"
    code, _, err = run("compress", path, "-o", output, *arguments)
    assert code == 2
    assert "Error" in err
    assert not output.exists()


def test_an_output_of_another_kind_is_wrong_usage(path, run, tmp_path):
    code, _, err = run("compress", path, "-o", tmp_path / "o.tflite")
    assert code == 2
    assert "must end in .onnx or .arena" in err


def expect_failure(run, tmp_path, *arguments):
    output = tmp_path / "o.arena"
    code, out, err = run("compress", *arguments, "-o", output)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert not output.exists()
    return err


def test_expected_failures_are_one_line_each(path, run, tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(path.read_bytes()[:100])
    expect_failure(run, tmp_path, broken)
    expect_failure(run, tmp_path, tmp_path / "absent.onnx")
    assert "no layer" in expect_failure(
        run, tmp_path, save(tmp_path, parse("(float[4] x) => (y) { y = Relu(x) }"))
    )


def test_a_budget_that_cannot_be_met_is_a_failure(path, run, tmp_path):
    assert "--weights" in expect_failure(run, tmp_path, path, "--weights", "1KiB")


def test_a_data_set_that_does_not_fit_is_a_failure(path, run, tmp_path):
    data = dataset(tmp_path, z=np.ones((2, 3), np.float32))
    assert "'x'" in expect_failure(run, tmp_path, path, "--evaluate", data)


def test_the_model_is_never_overwritten(path, run):
    before = path.read_bytes()
    code, _, err = run("compress", path, "-o", path)
    assert code == 1
    assert "choose another name" in err
    assert path.read_bytes() == before


def test_without_the_coder_the_extra_is_named(path, tmp_path, monkeypatch, capsys):
    found = command.find_spec
    monkeypatch.setattr(
        command, "find_spec", lambda name: None if name == "zstandard" else found(name)
    )
    assert main(["compress", str(path), "-o", str(tmp_path / "o.onnx")]) == 1
    assert "arenite[compression]" in capsys.readouterr().err


def test_a_compressed_model_is_built_with_coded_weights_and_a_budget(
    path, run, run_json, tmp_path
):
    model, program = tmp_path / "m.onnx", tmp_path / "m.arena"
    run_json("compress", path, "-o", model)
    said = run_json("build", model, "-o", program, "--code-weights", "--weights", "90%")
    assert said["weights"]["num_windows"] > 0
    assert said["weights"]["resident"] + said["weights"]["window"] <= 0.9 * 4 * 445_000
    assert program.stat().st_size < model.stat().st_size / 2
    code, out, _ = run("build", model, "-o", program, "--weights", "90%")
    assert code == 0
    assert "streamed" in out
    plan = tmp_path / "plan.json"
    run_json("plan", model, "--weights", "90%", "-o", plan)
    assert json.loads(plan.read_text())["model"]["weight_budget"] == "90%"
    assert run("verify", plan, model)[0] == 0
    again = tmp_path / "again.arena"
    assert run("build", model, "--plan", plan, "-o", again)[0] == 0
    assert again.read_bytes() == program.read_bytes()


DEEP = """(float[1,3,24,24] x) => (y)
<float[32,3,3,3] a, float[48,32,3,3] b, float[16,48,3,3] c>
{ p = Conv<pads=[1,1,1,1]>(x, a) q = Relu(p) r = Conv<pads=[1,1,1,1]>(q, b) s = Relu(r)
  y = Conv(s, c) }"""


@pytest.fixture
def deep(tmp_path):
    return save(tmp_path, with_random_weights(parse(DEEP)))


def test_channels_go_and_the_arena_shrinks(deep, run, run_json, tmp_path):
    output = tmp_path / "narrow.onnx"
    said = run_json("compress", deep, "-o", output, "--channels", "50%")
    found = said["channels"]
    assert (found["layers"], found["kept"], found["total"]) == (2, 40, 80)
    assert found["after"] < 0.6 * found["before"]
    assert {each["name"]: each["shape"][0] for each in said["layers"]} == {"b": 24, "c": 16}
    assert [each["stage"] for each in said["stages"]] == ["original", "narrowed", "shared"]
    code, out, _ = run("compress", deep, "-o", tmp_path / "narrow.arena", "--channels", "0.5")
    assert code == 0
    assert "40 of 80 kept in 2 convolutions" in out


def test_a_scan_proposes_densities(deep, run, run_json, tmp_path):
    output = tmp_path / "o.onnx"
    said = run_json("compress", deep, "-o", output, "--sensitivity", "0.3", "--layer", "a:bits=4")
    assert set(said["sensitivity"]) == {"a", "b", "c"}
    for layer in said["layers"]:
        losses = {float(key): loss for key, loss in said["sensitivity"][layer["name"]].items()}
        share = layer["kept"] / layer["weights"]
        if share < 1:
            assert losses[min(losses, key=lambda each: abs(each - share))] <= 0.3
    assert {each["name"]: each["bits"] for each in said["layers"]} == {"a": 4, "b": 8, "c": 8}
    code, out, _ = run("compress", deep, "-o", output, "--sensitivity", "0.3")
    assert code == 0
    assert "loss at a density of" in out
    code, _, err = run("compress", deep, "-o", output, "--sensitivity", "0.3", "--density", "0.5")
    assert code == 2
    assert "exclude each other" in err


def test_onnxruntimes_int8_stands_beside(path, run, run_json, tmp_path):
    output = tmp_path / "o.onnx"
    said = run_json("compress", path, "-o", output, "--int8")
    assert 0 < said["int8"]["quality"]["error"] < 0.2
    assert 440_000 < said["int8"]["size"] < 520_000
    code, out, _ = run("compress", path, "-o", output, "--int8")
    assert code == 0
    assert "by ONNX Runtime's quantiser" in out


def test_bits_are_chosen_for_a_mean(path, run_json, tmp_path):
    output = tmp_path / "o.onnx"
    said = run_json("compress", path, "-o", output, "--mean-bits", "5", "--layer", "a:bits=2")
    bits = {each["name"]: (each["bits"], each["weights"]) for each in said["layers"]}
    assert bits["a"][0] == 2
    assert bits["c"][0] <= 5
    assert run_json("compress", path, "-o", output)["int8"] is None


def scanning(model, folder):
    """Return the file of a scan and the command that scans."""
    scan = folder / "scan.json"
    output = folder / "o.onnx"
    return scan, ("compress", model, "-o", output, "--sensitivity", "0.3", "--scan", scan)


def test_an_interrupted_scan_goes_on(deep, run_json, tmp_path):
    scan, arguments = scanning(deep, tmp_path)
    whole = run_json(*arguments)["sensitivity"]
    found = json.loads(scan.read_text())
    assert found["losses"] == whole
    found["losses"].pop("c")
    found["losses"]["a"] = dict.fromkeys(whole["a"], 0.25)
    scan.write_text(json.dumps(found))
    again = run_json(*arguments)["sensitivity"]
    assert again == whole | {"a": dict.fromkeys(whole["a"], 0.25)}
    assert json.loads(scan.read_text())["losses"] == again


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"digest": "x", "samples": "y", "losses": {}}', "[" * 99_999]
)
def test_a_scan_of_something_else_is_refused(deep, refused, tmp_path, content):
    scan, arguments = scanning(deep, tmp_path)
    scan.write_text(content)
    assert "--scan" in refused(*arguments)
    assert scan.read_text() == content
    assert not (tmp_path / "o.onnx").exists()


def test_a_scan_file_without_a_scan_is_wrong_usage(deep, misused, tmp_path):
    output = tmp_path / "o.onnx"
    assert "--sensitivity" in misused("compress", deep, "-o", output, "--scan", tmp_path / "s")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda losses: {"0.5": 0.25},
        lambda losses: {"4.7": losses.pop("0.9")} | losses,
        lambda losses: losses | {"4.7": 0.1},
        lambda losses: losses | {"0.5": "0.25"},
        lambda losses: losses | {"0.5": True},
        lambda losses: losses | {"0.5": 10**400},
        lambda losses: losses | {"0.5": [0.25]},
        lambda losses: list(losses),
    ],
)
def test_a_scan_with_other_densities_or_no_losses_is_refused(
    deep, refused, run_json, tmp_path, spoil
):
    scan, arguments = scanning(deep, tmp_path)
    run_json(*arguments)
    document = json.loads(scan.read_text())
    document["losses"]["a"] = spoil(document["losses"]["a"])
    scan.write_text(json.dumps(document))
    assert "is not a file of --scan" in refused(*arguments)


def test_an_infinite_loss_is_kept_in_a_scan_file(tmp_path):
    losses = dict.fromkeys(DENSITIES, 0.5) | {0.05: inf}
    file = ScanFile(tmp_path / "scan.json", "digest", "samples")
    file.write([Sensitivity("a", losses)])
    assert "Infinity" not in file.path.read_text()
    (found,) = file.read()
    assert found.losses == losses
    assert list(found.losses) == sorted(losses, reverse=True)


DETECTOR = """(float[batch,3,height,width] x) => (y)
<float[16,3,3,3] a, float[24,16,3,3] b, float[24,10] c>
{ p = Conv<strides=[2,2]>(x, a) q = Relu(p) r = Conv(q, b) s = GlobalAveragePool(r)
  w = Flatten(s) y = MatMul(w, c) }"""


@pytest.fixture
def detector(tmp_path):
    return save(tmp_path, with_random_weights(parse(DETECTOR)))


SIZES = ("--dim", "height=20", "--dim", "width=30")


def test_a_free_size_is_never_made_up(detector, refused, tmp_path):
    said = refused("compress", detector, "-o", tmp_path / "o.onnx", "--dim", "height=20")
    assert "'width'" in said
    assert "--dim width=" in said
    assert "'height'" not in said
    assert not (tmp_path / "o.onnx").exists()


def test_the_sizes_given_are_evaluated(detector, run_json, tmp_path):
    output = tmp_path / "o.onnx"
    small = run_json("compress", detector, "-o", output, "--bits", "3", *SIZES)
    shape = ("--shape", "x=4x3x40x60")
    large = run_json("compress", detector, "-o", output, "--bits", "3", *shape)
    assert small["stages"][1]["error"] != large["stages"][1]["error"]
    assert 0 < small["stages"][1]["error"] < 1
    data = dataset(
        tmp_path, x=np.random.default_rng(0).standard_normal((9, 3, 20, 30), np.float32)
    )
    run_json("compress", detector, "-o", output, "--evaluate", data)
    run_json("compress", detector, "-o", output, "--evaluate", data, *SIZES, "--int8")


def test_a_data_set_of_another_size_than_is_given_is_refused(detector, refused, tmp_path):
    data = dataset(tmp_path, x=np.ones((9, 3, 20, 40), np.float32))
    said = refused("compress", detector, "-o", tmp_path / "o.onnx", "--evaluate", data, *SIZES)
    assert "3x20x40; the model takes 3x20x30" in said
    assert "data.npz" in said


def test_a_program_needs_every_size_before_anything_is_searched(detector, refused, tmp_path):
    program = tmp_path / "o.arena"
    said = refused("compress", detector, "-o", program, *SIZES)
    assert "'batch'" in said
    assert "--dim batch=1" in said


def test_a_dimension_that_the_model_does_not_have_is_refused(path, refused, tmp_path):
    said = refused("compress", path, "-o", tmp_path / "o.onnx", "--dim", "depth=3")
    assert "'depth' is not a free dimension of the model" in said


def test_a_scan_at_another_size_is_another_scan(detector, refused, run_json, tmp_path):
    scan = ("--sensitivity", "0.3", "--scan", tmp_path / "scan.json")
    run_json("compress", detector, "-o", tmp_path / "o.onnx", *SIZES, *scan)
    sizes = ("--dim", "height=20", "--dim", "width=40")
    said = refused("compress", detector, "-o", tmp_path / "o.onnx", *sizes, *scan)
    assert "on other samples" in said


def test_a_model_that_random_numbers_do_not_suit_says_that_it_is_not_evaluated(
    run, misused, tmp_path
):
    text = (
        "(float[1,30] x, int64[1] k) => (y) <float[30,40] a> { g = MatMul(x, a) y = Tile(g, n) }"
    )
    text = text.replace("Tile(g, n)", "Gather<axis=1>(g, k)")
    path = save(tmp_path, with_random_weights(parse(text)))
    output = tmp_path / "o.onnx"
    code, out, _ = run("compress", path, "-o", output)
    assert code == 0
    assert "not evaluated: input 'k' is not float32" in out
    assert "'k'" in misused("compress", path, "-o", output, "--int8")
    assert "'k'" in misused("compress", path, "-o", output, "--sensitivity", "0.1")


def test_weights_that_are_not_finite_are_one_line(refused, tmp_path):
    model = with_random_weights(parse(NETWORK))
    for tensor in model.graph.initializer:
        if tensor.name == "c":
            array = onnx.numpy_helper.to_array(tensor).copy()
            array[0, 0] = np.nan
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, "c"))
    said = refused("compress", save(tmp_path, model), "-o", tmp_path / "o.onnx", "--bits", "0")
    assert "layer 'c': 1 of its 442,368 weights is NaN or infinite" in said
    assert "tiny.onnx" in said


def test_a_model_never_grows(run, run_json, tmp_path):
    """A function that is called twice takes more once its weights are written out."""
    weights = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    function = onnx.helper.make_function(
        "own", "Layer", ["a"], ["b"],
        [
            onnx.helper.make_node(
                "Constant", [], ["w"], value=onnx.numpy_helper.from_array(weights)
            ),
            onnx.helper.make_node("MatMul", ["a", "w"], ["b"]),
        ],
        [onnx.helper.make_opsetid("", 17)],
    )  # fmt: skip
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "own" : 1]> tiny '
        "(float[1,40] x) => (float[1,40] y) { p = own.Layer(x) y = own.Layer(p) }"
    )
    model.functions.append(function)
    path, output = save(tmp_path, model), tmp_path / "o.onnx"
    said = run_json("compress", path, "-o", output)
    assert said["unchanged"]
    assert said["file_bytes"] == said["model_bytes"] == path.stat().st_size
    assert output.read_bytes() == path.read_bytes()
    assert "it is written as it was" in run("compress", path, "-o", output)[1]


def test_a_program_that_is_larger_than_its_model_says_so(run, tmp_path):
    text = "(float[1,16] x) => (y) <float[16,32] a> { p = MatMul(x, a) "
    text += " ".join(f"p{i} = Tanh(p{i - 1 if i else ''})" for i in range(40)) + " y = Relu(p39) }"
    path = save(tmp_path, with_random_weights(parse(text)))
    program = tmp_path / "o.arena"
    code, out, _ = run("compress", path, "-o", program)
    assert code == 0
    assert ("larger than the model" in out) == (program.stat().st_size > path.stat().st_size)
    assert program.stat().st_size > path.stat().st_size


def test_an_error_of_a_program_names_the_model(refused, tmp_path):
    text = (
        "(float[1,30] x, uint64[4] k) => (y, z) <float[30,40] a> { y = MatMul(x, a) z = Abs(k) }"
    )
    path = save(tmp_path, with_random_weights(parse(text)))
    said = refused("compress", path, "-o", tmp_path / "o.arena")
    assert said.startswith(f"error: {path}: ")

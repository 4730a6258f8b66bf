"""One plan for a range of sizes, from the command line and from Python."""

import json

import pytest

import arenite
from arenite.planner import planfile
from arenite.planner.errors import SizeError
from support.tiny_onnx import parse, save, with_random_weights

IMAGES = """
    (float[1, 3, H, W] image, float[1, 3, H, W] other) => (float[1, 3, H, W] sum) {
        sum = Add(image, other)
    }
"""
GENERIC = ("--target", "generic")


@pytest.fixture
def images(tmp_path):
    return save(tmp_path, parse(IMAGES))


def test_a_plan_for_a_range_is_that_of_the_highest_sizes(encoder, tmp_path, run, run_json):
    plan = tmp_path / "plan.json"
    ranged = run_json("plan", encoder, *GENERIC, "--dim", "seq=1..512", "-o", plan)
    single = run_json("plan", encoder, *GENERIC, "--dim", "seq=512")
    assert ranged["height"] == single["height"]
    assert ranged["optimal"]
    assert ranged["dimensions"] == [{"name": "seq", "low": 1, "high": 512, "step": 1}]
    lowest, middle = ranged["touched"]
    assert (lowest["sizes"], middle["sizes"]) == ({"seq": 1}, {"seq": 256})
    assert lowest["bytes"] < middle["bytes"] < ranged["height"]
    assert lowest["resident"] <= 4 * 4096 < middle["resident"] < ranged["height"]
    assert (single["dimensions"], single["touched"]) == ([], [])
    assert planfile.read(plan).model.dims["seq"].text == "1..512"
    code, out, _ = run("verify", plan, encoder)
    assert code == 0
    assert "for all sizes seq=1..512, made for" in out
    assert run_json("verify", plan)["dimensions"] == ranged["dimensions"]


def test_a_plan_for_another_range_is_not_the_models(encoder, tmp_path, run):
    plan = tmp_path / "plan.json"
    assert run("plan", encoder, *GENERIC, "--dim", "seq=1..512", "-o", plan)[0] == 0
    code, _, err = run("verify", plan, encoder, "--dim", "seq=2..512")
    assert code == 1
    assert "dimensions are seq=1..512 here and seq=2..512 in the model" in err
    document = json.loads(plan.read_text())
    quadratic = next(each for each in document["records"] if each["size"] == 4 * 512 * 512)
    rounded_up = ["*", 16, ["/", ["+", ["*", "seq", "seq"], 3], 4]]
    assert quadratic["expression"] == rounded_up
    quadratic["expression"] = ["*", 2048, "seq"]  # as large at the highest size
    plan.write_text(json.dumps(document))
    assert run("verify", plan)[0] == 0
    code, _, err = run("verify", plan, encoder)
    assert code == 1
    assert 'by ["*", 2048, "seq"]' in err


def test_ranges_of_a_shape_are_dimensions_of_the_model(images, run_json):
    found = run_json(
        "plan", images, *GENERIC, "--shape", "image=1x3x32..1080x32..1920:32",
        "--shape", "other=1x3x32..1080x32..1920:32",
    )  # fmt: skip
    assert {each["name"]: each["high"] for each in found["dimensions"]} == {"H": 1080, "W": 1920}


def test_ranges_of_one_dimension_must_agree(images, run):
    code, _, err = run(
        "plan", images, *GENERIC, "--shape", "image=1x3x32..1080x64", "--shape",
        "other=1x3x32..540x64",
    )  # fmt: skip
    assert code == 1
    assert "'H' cannot be both" in err


CACHED = """
    (float[past, 4] cache, float[seq, 4] new, float[total] mask) => (float[total, 4] y) {
        all = Concat <axis = 0> (cache, new)
        axes = Constant <value_ints = [1]> ()
        column = Unsqueeze(mask, axes)
        y = Mul(all, column)
    }
"""


def test_a_dimension_may_be_a_sum_of_others(tmp_path, run, run_json):
    model, plan = save(tmp_path, parse(CACHED)), tmp_path / "plan.json"
    sizes = ("--dim", "total=past+seq", "--dim", "past=0..64", "--dim", "seq=1..8")
    found = run_json("plan", model, *GENERIC, *sizes, "-o", plan)
    assert {each["name"] for each in found["dimensions"]} == {"past", "seq"}
    assert json.loads(plan.read_text())["model"]["dims"]["total"] == "past+seq"
    assert run("verify", plan, model)[0] == 0
    code, _, err = run("plan", model, "--dim", "total=past+seq", "--dim", "seq=1..8")
    assert code == 2
    assert "'past' is neither a number nor a dimension that is given" in " ".join(err.split())


def test_c_source_takes_dimensions_that_are_sums_of_others(tmp_path, run):
    text = """(float[past,4] p, float[seq,4] x, float[total,4] z) => (y)
        { c = Concat<axis=0>(p, x) y = Add(c, z) }"""
    path, out = save(tmp_path, parse(text)), tmp_path / "out"
    lengths = "--dim", "past=1..8", "--dim", "seq=1..4", "--dim", "total=past+seq"
    code, said, _ = run("export", path, "--to", "c", *lengths, "--json", "-o", out)
    assert code == 0
    assert json.loads(said)["tested"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("seq", "is not NAME=N or NAME=LOW..HIGH[:STEP]"),
        ("seq=", "expected a length such as 17, or a range such as 1..512"),
        ("seq=1..", "expected a length such as 17, or a range such as 1..512"),
        ("seq=512..1", "a range needs 0 <= low <= high"),
        ("seq=1..512:64", "the steps from 1 do not lead to 512"),
        ("seq=1-512", "expected a length such as 17, or a range such as 1..512"),
    ],
)
def test_a_range_that_is_none_is_refused(encoder, run, option, message):
    code, _, err = run("plan", encoder, "--dim", option)
    assert code == 2
    assert message in " ".join(err.split())


@pytest.mark.parametrize("option", ["image=1x3x32..x32", "image=1x3x..", "image", "image=1xtwo"])
def test_a_shape_with_a_range_that_is_none_is_refused(images, run, option):
    code, _, err = run("plan", images, "--shape", option)
    assert code == 2
    assert "--shape" in err


def test_targets_of_one_size_take_no_range(encoder, tmp_path, run):
    code, _, err = run("plan", encoder, "--target", "onnxruntime", "--dim", "seq=1..512")
    assert code == 2
    assert "--target onnxruntime plans one size: seq=1..512 is a range" in err
    out = tmp_path / "out"
    code, _, err = run("export", encoder, "--to", "onnxruntime", "--dim", "seq=1..512", "-o", out)
    assert code == 2
    assert "--to onnxruntime takes one size: seq=1..512 is a range" in " ".join(err.split())
    assert not out.exists()


def test_c_source_takes_the_sizes_of_a_run(encoder, tmp_path, run):
    out = tmp_path / "out"
    asked = "export", encoder, "--to", "c", "--dim", "seq=1..64", "--json", "-o", out
    code, said, _ = run(*asked)
    assert code == 0
    document = json.loads(said)
    assert document["tested"]
    assert document["dimensions"] == [{"name": "seq", "low": 1, "high": 64, "step": 1}]
    assert "_run(uint8_t *arena, int32_t seq);" in (out / f"{document['name']}.h").read_text()
    code, planned, _ = run("plan", encoder, "--target", "c", "--dim", "seq=1..64", "--json")
    assert code == 0
    assert json.loads(planned)["height"] == document["height"]


@pytest.mark.parametrize(
    ("option", "message"), [(("--budget", "1KiB"), "the least arena that bands reach")]
)
def test_what_c_source_cannot_do_for_a_range_is_refused(encoder, tmp_path, run, option, message):
    out = tmp_path / "out"
    code, _, err = run("export", encoder, "--to", "c", "--dim", "seq=1..64", *option, "-o", out)
    assert code
    assert message in " ".join(err.split())
    assert not out.exists()


def test_python_takes_ranges_as_texts(encoder):
    planned = arenite.plan(encoder, target="generic", dims={"seq": "64..512:64"})
    assert planned.height == arenite.plan(encoder, target="generic", dims={"seq": 512}).height
    assert [each.text for each in planned.file.dimensions] == ["64..512:64"]
    planned = arenite.plan(encoder, target="generic", shapes={"x": ("1..512", 16)})
    assert [str(each) for each in planned.file.dimensions] == ["seq=1..512"]
    with pytest.raises(SizeError, match="expected a length such as 17"):
        arenite.plan(encoder, target="generic", dims={"seq": "many"})


def test_one_plan_is_compared_with_plans_of_single_sizes(encoder, tmp_path, run, run_json):
    asked = ("compare", encoder, *GENERIC, "--dim", "seq=1..512", "--strategy", "best")
    (found,) = run_json(*asked)["models"]
    assert [each["sizes"]["seq"] for each in found["sizes"]] == [1, 128, 256, 384, 512]
    for each in found["sizes"]:
        assert each["lower_bound"] <= each["heights"]["best"] <= found["height"]
        assert each["heights"]["best"] <= each["bytes"] <= found["height"]
        single = run_json("plan", encoder, *GENERIC, "--dim", f"seq={each['sizes']['seq']}")
        # Alone, a size may also have another order, and share what differs at other sizes.
        assert single["height"] <= each["heights"]["best"]
    assert found["sizes"][-1]["heights"]["best"] == found["height"]
    (found,) = run_json(*asked, "--size", "seq=7", "--size", "seq=511")["models"]
    assert [each["sizes"] for each in found["sizes"]] == [{"seq": 7}, {"seq": 511}]
    (report,) = arenite.compare(
        encoder, strategies=["best"], target="generic", dims={"seq": "1..512"}, bands=False,
        sizes=[{"seq": 7}, {"seq": 511}],
    ).reports  # fmt: skip
    assert [each.as_json() for each in report.sizes] == found["sizes"]
    page = tmp_path / "page.html"
    code, out, _ = run(*asked, "--size", "seq=7", "-o", page)
    assert code == 0
    assert "Height over size" in page.read_text()
    assert "one plan for all sizes" in out
    assert "seq=7" in out


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("seq=513", "dimension 'seq' is 513; its range is seq=1..512"),
        ("batch=1", "'batch' is not a dimension with a range; known: seq=1..512"),
    ],
)
def test_a_size_outside_the_range_is_refused(encoder, run, size, message):
    asked = ("compare", encoder, *GENERIC, "--dim", "seq=1..512", "--strategy", "best")
    code, _, err = run(*asked, "--size", size)
    assert code == 1
    assert message in err


@pytest.mark.parametrize("size", ["seq", "seq=", "seq=1..5", "seq=1,seq=2", ""])
def test_a_size_that_is_none_is_refused(encoder, run, size):
    code, _, err = run("compare", encoder, "--dim", "seq=1..512", "--size", size)
    assert code == 2
    assert "--size" in err


CHAIN = """
    (float[1, 3, h, w] x) => (y)
    <float[16, 3, 3, 3] a, float[16, 16, 3, 3] b, float[8, 16, 3, 3] c> {
        p = Conv <pads = [1, 1, 1, 1]> (x, a)
        q = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (p, b)
        r = Conv <pads = [1, 1, 1, 1]> (q, c)
        y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
    }
"""


def test_a_plan_in_bands_holds_for_a_range(tmp_path, run, run_json):
    model = save(tmp_path, with_random_weights(parse(CHAIN)))
    plan, program = tmp_path / "fit.json", tmp_path / "fit.arena"
    ranges = ("--dim", "h=8..64", "--dim", "w=8..64")
    fitted = run_json("fit", model, *ranges, "--budget", "50%", "-o", plan)
    assert "bands" in json.loads(plan.read_text())
    code, out, _ = run("verify", plan, model)
    assert code == 0
    assert "for all sizes h=8..64, w=8..64" in out
    built = run_json("build", model, "--plan", plan, "-o", program)
    assert built["arena_bytes"] == fitted["height"]
    assert "for all sizes" in run("verify", program)[1]


def test_a_program_for_a_range_is_built_by_its_plan_or_at_once(encoder, tmp_path, run, run_json):
    plan, program = tmp_path / "plan.json", tmp_path / "model.arena"
    planned = run_json("plan", encoder, "--dim", "seq=1..64", "-o", plan)
    assert planned["target"] == "arenite"
    assert run("verify", plan, encoder)[0] == 0
    built = run_json("build", encoder, "--plan", plan, "-o", program)
    by_plan = program.read_bytes()
    assert run_json("build", encoder, "--dim", "seq=1..64", "-o", program)["touched"]
    assert program.read_bytes() == by_plan
    assert built["dimensions"] == planned["dimensions"]
    assert built["touched"] == planned["touched"]
    single = run_json("build", encoder, "--dim", "seq=64", "-o", tmp_path / "single.arena")
    assert built["arena_bytes"] == single["arena_bytes"]
    assert run_json("inspect", program)["dimensions"] == planned["dimensions"]

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from arenite.planner.errors import (
    BindingError,
    MissingDependencyError,
    ModelError,
    UnboundDimensionError,
    UnsupportedModelError,
)
from arenite.runtime import UnexpectedRuntimeError
from arenite.runtime.targets.onnxruntime import (
    export_onnxruntime,
    onnxruntime_problem,
    ordered_options,
    stock_memory,
    stock_options,
    stock_session,
)
from arenite.runtime.targets.onnxruntime import recording as recording_module
from arenite.strategies import find_order
from support import tiny_onnx
from support.command import main

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

# One branch is wide on its way to little, the other makes much at once. ONNX Runtime starts
# with the last operand, and that is the wrong one to carry through the wide branch.
BRANCHES = """(float[%s,4,64,64] x) => (y) <
    float[64,4,1,1] up, float[4,64,1,1] down, float[32,4,1,1] wide, float[32,4,1,1] side
> {
    a = Conv(x, up)
    b = Abs(a)
    c = Conv(b, down)
    d = GlobalMaxPool(c)
    little = Conv(d, wide)
    much = Conv(x, side)
    y = Add(%s)
}"""
PAYS, AS_GOOD = "little, much", "much, little"


def branches(folder: Path, operands: str, batch: str = "1") -> Path:
    model = tiny_onnx.parse(BRANCHES % (batch, operands))
    return tiny_onnx.save(folder, tiny_onnx.with_random_weights(model))


def feeds(batch: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {"x": random.standard_normal((batch, 4, 64, 64)).astype(np.float32)}


def test_a_better_order_is_kept_by_a_stock_session_and_takes_less(tmp_path: Path):
    path = branches(tmp_path, PAYS)
    export = export_onnxruntime(path, find_order("best"))
    assert export.stays == ""
    assert (export.stock.tensors, export.ordered.tensors) == (2_621_440, 2_097_152)
    assert export.order.peak == export.ordered.tensors
    nodes = [node.name for node in onnx.load_from_string(export.model).graph.node]
    measured = stock_memory(export.model, ordered_options(), feeds())
    assert list(measured.order) == nodes
    (expected,) = stock_session(path, stock_options()).run(None, feeds())
    assert np.array_equal(measured.outputs[0], expected)


def test_where_the_stock_order_is_as_good_the_model_stays_as_it_is(tmp_path: Path):
    path = branches(tmp_path, AS_GOOD)
    export = export_onnxruntime(path, find_order("best"))
    assert export.stays == "the model's own order needs no more memory"
    assert export.stock.tensors == export.ordered.tensors
    assert export.model == path.read_bytes()


@pytest.mark.parametrize("operands", [PAYS, AS_GOOD])
def test_weights_beside_the_model_come_into_the_file(tmp_path: Path, operands: str):
    path = branches(tmp_path, operands)
    (expected,) = stock_session(path, stock_options()).run(None, feeds())
    model = onnx.load(path)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    export = export_onnxruntime(path, find_order("best"))
    (tmp_path / "w.bin").unlink()
    assert bool(export.stays) is (operands == AS_GOOD)
    (found,) = stock_session(export.model, stock_options()).run(None, feeds())
    np.testing.assert_array_equal(found, expected)


def test_a_weight_whose_file_is_wrong_is_refused(tmp_path: Path):
    path = branches(tmp_path, PAYS)
    onnx.save(
        onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0
    )
    (tmp_path / "w.bin").write_bytes(b"\0")
    with pytest.raises(ModelError, match=r"tiny\.onnx: "):
        export_onnxruntime(path, find_order("best"))


def test_a_bad_order_is_never_exported(tmp_path: Path):
    path = branches(tmp_path, AS_GOOD)
    export = export_onnxruntime(path, find_order("breadth-first"))
    assert export.stays == "the model's own order needs no more memory"
    assert export.ordered.tensors > export.stock.tensors


def test_an_order_that_is_not_kept_is_not_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        "arenite.runtime.targets.onnxruntime.export.ordered_options", stock_options
    )
    export = export_onnxruntime(branches(tmp_path, PAYS), find_order("best"))
    assert export.stays == "ONNX Runtime does not keep the order"


def test_nodes_that_we_fold_away_and_shapes_that_run_early_do_not_matter(tmp_path: Path):
    text = """(float[2,8] x) => (y, s) {
        a = Neg(x) b = Sin(a) s = Shape(b) y = Reshape(b, s)
    }"""
    path = tiny_onnx.save(tmp_path, tiny_onnx.parse(text))
    export = export_onnxruntime(path, find_order("best"))
    assert export.stays == "the model's own order needs no more memory"


def test_a_weight_that_is_folded_away_leaves_no_input_to_feed():
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    export = export_onnxruntime(path / "light_squeezenet.onnx", find_order("best"))
    assert export.stays == "the model's own order needs no more memory"


def test_free_dimensions_are_bound(tmp_path: Path):
    path = branches(tmp_path, PAYS, batch="N")
    for bound in ({"dims": {"N": 2}}, {"shapes": {"x": (2, 4, 64, 64)}}):
        export = export_onnxruntime(path, find_order("best"), **bound)
        assert export.ordered.tensors == 2 * 2_097_152
        problem = onnxruntime_problem(path, **bound)
        assert problem == onnxruntime_problem(path, **bound)
        assert problem.lower_bound == 2 * 2_097_152


@pytest.mark.parametrize(
    ("bound", "error", "said"),
    [
        ({}, UnboundDimensionError, "free dimensions 'N'"),
        ({"dims": {"N": 1, "M": 1}}, BindingError, "'M' is not a free dimension"),
        ({"shapes": {"z": (1,)}}, BindingError, "'z' is not an input"),
        ({"shapes": {"x": (1, 4, 64, 63)}}, BindingError, r"'x' cannot be \(1, 4, 64, 63\)"),
        ({"shapes": {"x": (1, 4)}}, BindingError, r"'x' cannot be \(1, 4\)"),
    ],
)
def test_what_does_not_bind_the_inputs_is_refused(tmp_path, bound, error, said):
    with pytest.raises(error, match=said):
        onnxruntime_problem(branches(tmp_path, PAYS, batch="N"), **bound)


def test_an_input_that_cannot_be_drawn_is_refused(tmp_path: Path):
    text = "(string[2] x) => (string[2] y) { y = Identity(x) }"
    path = tiny_onnx.save(tmp_path, tiny_onnx.parse(text))
    with pytest.raises(UnexpectedRuntimeError, match="'x' has an element type unknown to numpy"):
        onnxruntime_problem(path)
    with pytest.raises(UnsupportedModelError, match=r"tensor\(string\) cannot be fed"):
        export_onnxruntime(path, find_order("best"))


def test_an_input_that_no_machine_holds_is_refused(tmp_path: Path):
    path = tiny_onnx.save(tmp_path, tiny_onnx.parse("(float[n,4] x) => (y) { y = Neg(x) }"))
    with pytest.raises(UnsupportedModelError, match=r"'x': .* has too many elements to run"):
        export_onnxruntime(path, find_order("best"), dims={"n": 1 << 60})


def test_a_runtime_that_does_not_note_its_memory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        recording_module, "_events", lambda _: [{"name": "a_kernel_time", "args": {}}]
    )
    with pytest.raises(UnexpectedRuntimeError, match="does not record its memory"):
        stock_memory(branches(tmp_path, PAYS), stock_options(), feeds())


def test_a_damaged_model_is_refused(tmp_path: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"no model at all")
    with pytest.raises(UnsupportedModelError, match="rejected by onnxruntime"):
        export_onnxruntime(path, find_order("best"))


def test_without_onnx_runtime_the_error_names_the_extra(tmp_path: Path, without):
    without("onnxruntime")
    with pytest.raises(MissingDependencyError, match=r"arenite\[onnx\]"):
        export_onnxruntime(branches(tmp_path, PAYS), find_order("best"))


def run(*words: str | Path) -> int:
    return main([str(word) for word in words])


def test_the_command_writes_the_model_and_says_what_it_takes(tmp_path: Path, capsys):
    path, output = branches(tmp_path, PAYS), tmp_path / "ours.onnx"
    command = ("export", path, "--to", "onnxruntime", "-o", output)
    assert run(*command, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tensors"] == {"stock": 2_621_440, "ordered": 2_097_152}
    assert said["order_used"] is True
    assert run(*command) == 0
    assert "2,097,152 B (2 MiB), 20.0 % less" in capsys.readouterr().out
    assert output.read_bytes() != path.read_bytes()


def test_the_command_says_so_where_the_stock_order_stays(tmp_path: Path, capsys):
    path, output = branches(tmp_path, AS_GOOD), tmp_path / "ours.onnx"
    assert run("export", path, "--to", "onnxruntime", "-o", output) == 0
    assert "stock stays: the model's own order needs no more memory" in capsys.readouterr().out
    assert output.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("target", "option", "said"),
    [
        ("onnxruntime", "--strategy=optimal", "choose an --order"),
        ("onnxruntime", "--header=a.h", "not onnxruntime"),
        ("tflm", "--order=best", "are for --to onnxruntime"),
        ("tflm", "--dim=N=1", "are for --to onnxruntime"),
    ],
)
def test_options_of_another_target_are_refused(tmp_path: Path, capsys, target, option, said):
    path = branches(tmp_path, PAYS)
    assert run("export", path, "--to", target, "-o", tmp_path / "o", option) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_plan_for_onnx_runtime_is_verified_against_what_it_asks_for(tmp_path: Path, capsys):
    path, plan = branches(tmp_path, PAYS, batch="N"), tmp_path / "plan.json"
    command = ("plan", path, "--target", "onnxruntime", "-o", plan)
    assert run(*command, "--align", "16") == 2
    assert "decides boundary, alignment" in " ".join(capsys.readouterr().err.split())
    assert run(*command, "--dim", "N=2") == 0
    assert run("verify", plan, path) == 0
    assert (
        onnxruntime_problem(path, dims={"N": 2}).lower_bound
        == (json.loads(plan.read_text())["height"])
    )

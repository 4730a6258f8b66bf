"""Weights that a step brings into a window."""

import math

import numpy as np
import pytest

from arenite.compression import OnnxModel, with_blocks, write_onnx
from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import ProgramError, Session, _core
from arenite.runtime.rewrites import WeightBudget, weight_bytes
from arenite.strategies import find
from support.coded_programs import KINDS, code, network
from support.edited_programs import apart, edited
from support.running import PoisonedSession, assert_same, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights


@pytest.fixture(scope="module", params=KINDS)
def path(request, tmp_path_factory):
    """A network whose weights have many values, few, or are mostly zeros."""
    return network(tmp_path_factory.mktemp("network"), **KINDS[request.param])


@pytest.fixture(scope="module")
def assembly(path):
    """Its program, most weights of it in windows."""
    compiled = compile_model(path, Reading(weight_budget=WeightBudget(25, is_percent=True)))
    return compiled.assemble(find("best")(compiled.source.problem), code)


def loads(root):
    """Return the steps that load weights."""
    return [each for each in root["steps"] if each["kernel_type"] == "LoadWeights"]


def shrink(root, spare=0):
    """Let each window have so many elements more than its weights."""
    for step in loads(root):
        weights = root["tensors"][step["inputs"][0]]
        root["tensors"][step["outputs"][0]]["shape"] = [math.prod(weights["shape"]) + spare]


def test_filters_in_windows_give_the_same(path, assembly):
    with PoisonedSession([edited(assembly, lambda root: None)]) as session:
        for seed in range(2):
            feeds = random_feeds(session, seed)
            assert_same(session.run(feeds), reference_outputs(path, feeds))


def test_a_window_that_is_smaller_than_its_weights_is_refused(assembly):
    with pytest.raises(ProgramError, match=r"its window has \d+ B; its weights have \d+"):
        Session.of_pieces([edited(assembly, lambda root: shrink(root, -1))], "small")


def test_a_window_holds_the_weights_as_the_file_has_them(path):
    compiled = compile_model(path, Reading(weight_budget=WeightBudget(25, is_percent=True)))
    assembly = apart(compiled)

    def edit(root):
        """Let the last window be an output as well."""
        index = next(
            i for i in reversed(range(len(root["steps"])))
            if root["steps"][i]["kernel_type"] == "LoadWeights"
        )  # fmt: skip
        step = root["steps"][index]
        window = root["tensors"][step["outputs"][0]]
        weights = root["tensors"][step["inputs"][0]]
        (record,) = (
            each for each in root["records"]
            if each["offset"] == window["offset"] and each["start"] == index
        )  # fmt: skip
        record["end"] = len(root["steps"])
        root["outputs"].append(
            {"name": "window", "tensor": len(root["tensors"]), "shape": weights["shape"],
             "permutation": list(range(len(weights["shape"])))}
        )  # fmt: skip
        root["tensors"].append(
            {"name": "weights in memory", "type": "float32", "shape": weights["shape"],
             "place": "memory", "offset": window["offset"]}
        )  # fmt: skip

    with Session.of_pieces([edited(assembly, edit)], "read twice") as session:
        feeds = random_feeds(session)
        outputs = session.run(feeds)
    window = outputs.pop("window")
    assert_same(outputs, reference_outputs(path, feeds))
    weights = compiled.program.constants
    assert any(np.array_equal(window, each) for each in weights.values())


def test_load_weights_is_an_operator_that_the_core_runs():
    assert "LoadWeights" in _core.supported()


def test_windows_of_blocks_give_the_same_and_share_a_table_with_a_look_up(tmp_path):
    text = (
        "(int64[5] i) => (y) <float[400,64] w, float[64,256] u, float[256,64] d> "
        "{e = Gather(w, i) h = MatMul(e, u) g = MatMul(h, d) t = Transpose<perm=[1,0]>(w) "
        "y = MatMul(g, t)}"
    )
    floats = save(tmp_path, with_random_weights(parse(text)))
    made, _ = with_blocks(OnnxModel(floats), 4, 32)
    path = tmp_path / "blocks.onnx"
    write_onnx(path, made)
    compiled = compile_model(path, Reading(weight_budget=WeightBudget(25, is_percent=True)))
    streaming = compiled.streaming
    assert streaming.resident == 0
    # Without the table, the last to be streamed, there is room for one of the others.
    more = compile_model(path, Reading(weight_budget=WeightBudget(35, is_percent=True)))
    assert more.streaming.resident == 64 * 256 * (1 / 2 + 2 / 32)
    assert streaming.resident + streaming.window <= 0.25 * weight_bytes(compiled.program)
    assembly = compiled.assemble(find("best")(compiled.source.problem))
    # Windows of the table are parts of it in the file: codes and scales are there once.
    assert assembly.weights_size < 1.05 * (400 + 2 * 256) * 64 * (1 / 2 + 2 / 32)
    whole = compile_model(path).assemble(find("best")(compile_model(path).source.problem))
    feeds = {"i": np.array([0, 399, 17, 17, 230])}
    with (
        PoisonedSession([edited(assembly, lambda root: None)], guard=True) as streamed,
        PoisonedSession([edited(whole, lambda root: None)]) as resident,
    ):
        for _ in range(2):
            assert np.array_equal(streamed.run(feeds)["y"], resident.run(feeds)["y"])

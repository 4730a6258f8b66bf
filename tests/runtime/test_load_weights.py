"""Weights that a step brings into a window, whatever the window holds them as."""

import math
import os

import numpy as np
import pytest

from arenite.runtime import _core
from arenite.runtime.compiler import compile_model
from arenite.runtime.errors import ProgramError
from arenite.runtime.rewrites.weight_budget import WeightBudget
from arenite.runtime.session import Session, _Options
from arenite.strategies import find
from support.coded_programs import KINDS, code, network
from support.edited_programs import apart, edited
from support.running import PoisonedSession, assert_same, random_feeds, reference_outputs


@pytest.fixture(scope="module", params=KINDS)
def path(request, tmp_path_factory):
    """A network whose weights have many values, few, or are mostly zeros."""
    return network(tmp_path_factory.mktemp("network"), **KINDS[request.param])


@pytest.fixture(scope="module")
def assembly(path):
    """Its program, most weights of it in windows."""
    compiled = compile_model(path, weight_budget=WeightBudget(25, is_percent=True))
    return compiled.assemble(find("best")(compiled.source.problem), code)


def unpacked(data):
    """Open a session whose windows hold the weights as they are."""
    session = Session.__new__(Session)
    descriptor = os.memfd_create("program")
    try:
        os.write(descriptor, data)
        session._open(descriptor, "program", _Options(), packs_windows=False)
    finally:
        os.close(descriptor)
    return session


def loads(root):
    """Return the steps that load weights."""
    return [each for each in root["steps"] if each["kernel_type"] == "LoadWeights"]


def shrink(root, spare=0):
    """Let each window have no more elements than its weights, and a few."""
    for step in loads(root):
        weights = root["tensors"][step["inputs"][0]]
        root["tensors"][step["outputs"][0]]["shape"] = [math.prod(weights["shape"]) + spare]


def backends(session, kinds):
    """Return whose kernels run the steps of these kinds."""
    return {step.backend for step in session.profile() if step.operator in kinds}


def products(session):
    """Return whose kernels run convolutions and products."""
    return backends(session, {"Conv2D", "FullyConnected"})


def test_windows_that_hold_weights_as_they_are_give_the_same(path, assembly):
    with unpacked(edited(assembly, lambda root: None)) as session:
        for seed in range(2):
            feeds = random_feeds(session, seed)
            assert_same(session.run(feeds), reference_outputs(path, feeds))
        assert "arenite" in products(session)


def test_windows_without_room_for_the_order_of_the_kernels_give_the_same(path, assembly):
    with PoisonedSession([edited(assembly, shrink)]) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds))
        assert "arenite" in products(session._sessions[0])


@pytest.mark.skipif(not _core.has_xnnpack, reason="needs XNNPACK")
def test_windows_with_room_hold_the_order_of_the_kernels(assembly):
    with Session.of_pieces([edited(assembly, lambda root: None)], "packed") as session:
        assert products(session) == {"xnnpack"}
        assert backends(session, {"LoadWeights"}) == {"arenite"}


def test_a_window_that_is_smaller_than_its_weights_is_refused(assembly):
    with pytest.raises(ProgramError, match=r"its window has \d+ B; its weights have \d+"):
        Session.of_pieces([edited(assembly, lambda root: shrink(root, -1))], "small")


def forget(root):
    """Let the step that loads the first window fill it with zeros instead."""
    step = loads(root)[0]
    step["kernel_type"] = "Copy"
    step["kernel"] = {"moves": [], "fill": [0, 0, 0, 0]}


def test_a_filter_in_memory_that_no_step_loaded_is_refused(assembly):
    with pytest.raises(ProgramError, match="neither constant nor loaded by a step before"):
        Session.of_pieces([edited(assembly, forget)], "forgotten")


def test_a_window_that_another_step_reads_too_holds_the_weights_as_they_are(path):
    compiled = compile_model(path, weight_budget=WeightBudget(25, is_percent=True))
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
        assert "arenite" in products(session)
    window = outputs.pop("window")
    assert_same(outputs, reference_outputs(path, feeds))
    weights = compiled.program.constants
    assert any(np.array_equal(window, each) for each in weights.values())


def test_load_weights_is_an_operator_that_the_core_runs():
    assert "LoadWeights" in _core.supported()

"""What a session says that it holds."""

from dataclasses import replace

import pytest

from arenite.runtime import Session, SessionMemory
from arenite.runtime.rewrites import WeightBudget
from support.coded_programs import build_coded, network
from support.running import build, random_feeds
from support.tiny_onnx import parse, save, with_random_weights
from support.tiny_programs import accumulator, classifier


def memory_of(path) -> SessionMemory:
    """Return what a session of the file holds, which runs do not change."""
    with Session(path) as session:
        held = session.memory()
        session.run(random_feeds(session))
        assert session.memory() == held
        return held


def section_sizes(path):
    """Return the bytes of the program and of the weights, from the head of the file."""
    data = path.read_bytes()
    return int.from_bytes(data[16:24], "little"), len(data) - int.from_bytes(data[24:32], "little")


def test_what_the_file_states_is_exact(tmp_path):
    path = accumulator(tmp_path)
    held = memory_of(path)
    with Session(path) as session:
        assert held.memories == session.arena_bytes + 128
    assert (held.program, held.weights) == section_sizes(path)
    # The start of the state, 4 floats, which a reset reads.
    assert held.weights_resident in (0, 16)
    assert held.decoded == 0


def test_the_parts_that_are_resident_make_the_total(tmp_path):
    held = memory_of(classifier(tmp_path, quantised=False))
    assert held.total == (
        held.memories + held.program + held.weights_resident + held.decoded + held.kernels
        + held.other
    )  # fmt: skip
    assert 0 < held.other < 1 << 16


def test_weights_are_read_where_the_file_has_them(tmp_path):
    path, compiled = build_coded(network(tmp_path), tmp_path, coded=False)
    weights = sum(array.nbytes for array in compiled.program.constants.values())
    held = memory_of(path)
    assert weights <= held.weights_resident <= held.weights
    assert held.kernels < 4096  # the steps themselves


RECURRENT = {
    "LSTM": "<float[1,256,32] w, float[1,256,64] r> { y, h, c = LSTM<hidden_size=64>(x, w, r) }",
    "GRU": "<float[1,192,32] w, float[1,192,64] r> { y, h = GRU<hidden_size=64>(x, w, r) }",
}


@pytest.mark.parametrize("layer", RECURRENT)
def test_a_recurrent_layer_reads_its_weights_where_the_file_has_them(layer, tmp_path):
    text = f"(float[4,1,32] x) => (y) {RECURRENT[layer]}"
    held = memory_of(build(save(tmp_path, with_random_weights(parse(text))), tmp_path))
    assert 0.95 * held.weights < held.weights_resident <= held.weights
    assert held.kernels < 1024  # the step itself


def test_weights_that_are_loaded_for_each_run_are_not_held(tmp_path):
    budget = WeightBudget(20, is_percent=True)
    plain = memory_of(build_coded(network(tmp_path), tmp_path, coded=False)[0])
    path, compiled = build_coded(network(tmp_path), tmp_path, budget, coded=False)
    held = memory_of(path)
    weights = sum(array.nbytes for array in compiled.program.constants.values())
    assert held.weights_resident < 0.2 * weights
    assert held.total < plain.total - 0.5 * weights


def test_codes_that_are_decoded_for_each_run_are_held_as_codes(tmp_path):
    path = network(tmp_path, num_values=32)
    budget = WeightBudget(20, is_percent=True)
    file, compiled = build_coded(path, tmp_path, budget)
    weights = sum(array.nbytes for array in compiled.program.constants.values())
    held = memory_of(file)
    assert 0 < held.weights_resident < 0.3 * weights


def test_sessions_that_come_and_go_count_the_same(tmp_path):
    path = classifier(tmp_path, quantised=True)
    first = memory_of(path)
    with Session(path):
        second = memory_of(path)
    third = memory_of(path)
    for held in (second, third):
        # The heap hands out what it has, which may be a little more than was asked for.
        assert abs(held.kernels - first.kernels) < 1024
        assert abs(held.other - first.other) < 1024
        assert replace(held, kernels=0, other=0) == replace(first, kernels=0, other=0)


def test_weights_that_are_decoded_once_are_held_once(tmp_path):
    file, compiled = build_coded(network(tmp_path, num_values=32), tmp_path)
    held = memory_of(file)
    weights = sum(array.nbytes for array in compiled.program.constants.values())
    assert weights * 0.95 < held.decoded + held.weights_resident < weights * 1.05
    assert held.kernels < 8192

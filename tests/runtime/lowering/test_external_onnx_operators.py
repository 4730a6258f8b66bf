"""ONNX operators that we leave to ONNX Runtime, among steps of ours: the same bits."""

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model, lower_model
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

CASES = {
    "max pool with indices by columns": "(float[1,3,6,6] x) => (float[1,3,3,3] y, "
    "int64[1,3,3,3] i) {y, i = MaxPool<kernel_shape=[2,2], strides=[2,2], storage_order=1>(x)}",
    "max unpool": "(float[1,3,6,6] x) => (float[1,3,6,6] y) "
    "{m, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) "
    "y = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(m, i)}",
    "smallest elements": "(float[4,9] x) => (float[4,3] v, int64[4,3] i) <int64[1] k = {3}> "
    "{v, i = TopK<largest=0>(x, k)}",
    "slices of a batch": "(float[4,3,2] x, int64[4,5,1] i) => (float[4,5,2] y) "
    "{y = GatherND<batch_dims=1>(x, i)}",
    "grid sample": "(float[1,3,6,6] x, float[1,4,5,2] g) => (float[1,3,4,5] y) "
    "{s = Abs(g) y = GridSample(x, s)}",
    "gather elements": "(float[4,3] x, int64[2,3] i) => (float[2,3] y) {y = GatherElements(x, i)}",
    "einsum of three": "(float[4,3] x, float[3,5] z, float[5,2] w) => (float[4,2] y) "
    '{y = Einsum<equation="ij,jk,kl->il">(x, z, w)}',
    "einsum of a diagonal": "(float[4,4] x, float[4,5] z) => (float[4,5] y) "
    '{y = Einsum<equation="ii,ik->ik">(x, z)}',
    "resize by cubes": "(float[1,2,3,3] x) => (float[1,2,6,6] y) <float[4] s = {1,1,2,2}> "
    '{y = Resize<mode="cubic">(x, , s)}',
    "reversed sequences": "(float[4,2] x) => (float[4,2] y) <int64[2] n = {3,4}> "
    "{y = ReverseSequence(x, n)}",
}


@pytest.mark.parametrize("name", CASES)
def test_onnx_runtime_runs_what_we_lack(name, tmp_path):
    path = save(tmp_path, with_random_weights(parse(CASES[name])))
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        assert "onnxruntime" in session.backends()
        for seed in range(3):
            feeds = random_feeds(session, seed)
            outputs, expected = session.run(feeds), reference_outputs(path, feeds)
            assert list(outputs) == list(expected)
            for key, value in expected.items():
                assert outputs[key].dtype == value.dtype
                np.testing.assert_array_equal(outputs[key], value)


def test_the_spectrum_of_a_real_signal_has_one_side(tmp_path):
    """The onnx package infers two sides where the node states none."""
    text = (
        "(float[1,128,1] x) => (float[1,15,9,2] y) <int64 s = {8}, int64 n = {16}> "
        "{y = STFT(x, s, , n)}"
    )
    path = save(tmp_path, parse(text))
    with PoisonedSession(build(path, tmp_path), guard=True) as session:
        feeds = random_feeds(session)
        expected = reference_outputs(path, feeds)
        np.testing.assert_array_equal(session.run(feeds)["y"], expected["y"])


def test_what_onnx_runtime_refuses_is_refused_before_a_program_is_made(tmp_path):
    text = "(double[4,3] x) => (double[4,3] y) {y = Acos(x)}"
    with pytest.raises(UnsupportedOperatorsError, match="rejected by onnxruntime"):
        compile_model(save(tmp_path, parse(text)))


def test_what_draws_random_numbers_does_not_run_again_and_others_may(tmp_path):
    text = """(float[3,3] x) => (y, z) { y = RandomNormalLike<dtype=1>(x) z = Det(x) }"""
    program = lower_model(save(tmp_path, parse(text))).program
    again = {step.operator.label: step.operator.repeatable for step in program.steps}
    assert again == {"RandomNormalLike": False, "Det": True}

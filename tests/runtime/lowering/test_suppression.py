"""The selection of boxes behind detectors, beside ONNX Runtime and LiteRT."""

import numpy as np
import onnxruntime
import pytest

from arenite.runtime import Session, SizeRangeError
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_operator import Given, Reference, operator_model, weights
from support.tiny_onnx import parse, save

GENERATOR = np.random.default_rng(9)


def boxes(*shape, is_centre=False):
    """Boxes that overlap a lot: corners in any order, or centres with width and height."""
    places, lengths = (GENERATOR.uniform(0, 1, (*shape, 2)) for _ in range(2))
    lengths *= 0.5
    if is_centre:
        return np.concatenate([places, lengths], -1).astype(np.float32)
    corners = np.concatenate([places, places + lengths], -1).astype(np.float32)
    turned = GENERATOR.random(shape) < 0.3
    corners[turned] = corners[turned][:, [2, 3, 0, 1]]
    return corners


def scores(*shape):
    """Scores with many ties."""
    return (np.round(GENERATOR.uniform(0, 1, shape) * 50) / 50).astype(np.float32)


ONNX = {
    "both thresholds": "NonMaxSuppression(b, s, k, o, t)",
    "no threshold of scores": "NonMaxSuppression(b, s, k, o)",
    "the default overlap": "NonMaxSuppression(b, s, k)",
    "centres": "NonMaxSuppression<center_point_box=1>(b, s, k, o, t)",
}


def suppression(call, count=7, after=""):
    output = "z" if after else "y"
    return (
        f"(float[2,40,4] b, float[2,3,40] s) => (int64[n,3] {output}) "
        f"<int64 k = {{{count}}}, float o = {{0.4}}, float t = {{0.35}}> {{ y = {call} {after} }}"
    )


@pytest.mark.parametrize("name", ONNX)
@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_rows_are_those_of_onnx_runtime_and_as_many(name, count, tmp_path):
    path = save(tmp_path, parse(suppression(ONNX[name], count)))
    session = PoisonedSession(build(path, tmp_path))
    peer = onnxruntime.InferenceSession(path)
    lengths = set()
    for _ in range(4):
        inputs = {"b": boxes(2, 40, is_centre=name == "centres"), "s": scores(2, 3, 40)}
        (own,) = session.run(inputs).values()
        (expected,) = peer.run(None, inputs)
        np.testing.assert_array_equal(own, expected)
        lengths.add(len(own))
    # All classes find 7 boxes.
    assert (len(lengths) > 1) == (count == 1000)


def test_a_score_of_minus_infinity_is_selected_where_no_threshold_is_given(tmp_path):
    path = save(tmp_path, parse(suppression(ONNX["the default overlap"])))
    inputs = {"b": boxes(2, 40), "s": np.full((2, 3, 40), -np.inf, np.float32)}
    (own,) = PoisonedSession(build(path, tmp_path)).run(inputs).values()
    (expected,) = onnxruntime.InferenceSession(path).run(None, inputs)
    assert len(own)
    np.testing.assert_array_equal(own, expected)


def test_ports_have_the_rows_of_the_last_run_and_results_of_earlier_runs_stay(tmp_path):
    path = save(tmp_path, parse(suppression(ONNX["both thresholds"])))
    with Session(build(path, tmp_path)) as session:
        assert session.outputs[0].shape == (42, 3)
        assert session.sizes == {"y": 42}
        nothing = {"b": boxes(2, 40), "s": np.zeros((2, 3, 40), np.float32)}
        some = {"b": boxes(2, 40), "s": scores(2, 3, 40)}
        (kept,) = session.run(some).values()
        before = kept.copy()
        assert session.sizes == {"y": len(kept)}
        assert session.run(nothing, copy=False)["y"].shape == (0, 3)
        assert session.outputs[0].view.shape == (0, 3)
        np.testing.assert_array_equal(kept, before)


def test_a_size_that_is_counted_cannot_be_set(tmp_path):
    path = save(tmp_path, parse(suppression(ONNX["both thresholds"])))
    with Session(build(path, tmp_path)) as session:
        (dimension,) = session.dimensions
        assert (dimension.low, dimension.high) == (0, 42)
        with pytest.raises(SizeRangeError, match=f"counted by step {dimension.counted_by!r}"):
            session.resize(y=3)


@pytest.mark.parametrize(
    ("call", "count", "after", "reason"),
    [("NonMaxSuppression<center_point_box=2>(b, s, k)", 7, "", "center_point_box=2")],
)
def test_other_forms_of_onnx_are_refused(call, count, after, reason, tmp_path):
    path = save(tmp_path, parse(suppression(call, count, after)))
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)


def constant(value, dtype=np.float32):
    return weights(np.array(value, dtype))


def tflite(sigma=None, most=6, num_boxes=40):
    inputs = [
        Given((num_boxes, 4)), Given((num_boxes,)), constant(most, np.int32), constant(0.4),
        constant(0.35),
    ]  # fmt: skip
    selected, count = Given((most,), "int32"), Given((), "int32")
    if sigma is None:
        return operator_model("NON_MAX_SUPPRESSION_V4", inputs, [selected, count])
    return operator_model(
        "NON_MAX_SUPPRESSION_V5", [*inputs, constant(sigma)], [selected, Given((most,)), count]
    )


@pytest.mark.parametrize("sigma", [None, 0.0, 0.5])
@pytest.mark.parametrize("most", [1, 6, 100])
def test_boxes_scores_and_their_count_are_those_of_litert(sigma, most, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(tflite(sigma, most))
    session, reference = PoisonedSession(build(path, tmp_path)), Reference(path)
    for _ in range(4):
        # Scores without ties: which of equals comes first is not LiteRT's to say.
        numbers = GENERATOR.permutation(40).astype(np.float32) / 40
        inputs = [boxes(40), numbers]
        own = session.run(dict(zip((p.name for p in session.inputs), inputs, strict=True)))
        for made, expected in zip(own.values(), reference.run(inputs), strict=True):
            assert made.dtype == expected.dtype
            np.testing.assert_allclose(made, expected, rtol=1e-6)


def test_a_number_of_no_boxes_is_refused(tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(tflite(most=0))
    with pytest.raises(UnsupportedOperatorsError, match="max_output_size=0 is unsupported"):
        build(path, tmp_path)

"""The custom operator that detectors end with, beside LiteRT's."""

import numpy as np
import pytest

from arenite.runtime.lowering.errors import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_operator import Given, Reference, operator_model, weights

CODE = "TFLite_Detection_PostProcess"
OPTIONS = {
    "max_detections": 10, "max_classes_per_detection": 1, "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.4, "num_classes": 3, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0,
    "w_scale": 5.0, "use_regular_nms": False,
}  # fmt: skip


def detector(options, boxes=60, columns=4, dtype="float32", coding=4):
    """A model of the operator alone, its anchors constant, and what it is to be fed."""
    generator = np.random.default_rng(4)
    anchors = generator.uniform(0.1, 0.9, (boxes, 4)).astype(np.float32)
    coded = generator.normal(0, 2, (1, boxes, coding)).astype(np.float32)
    scores = generator.uniform(0, 1, (1, boxes, columns)).astype(np.float32)
    told = {**OPTIONS, **options}
    count = abs(told["max_detections"] * told["max_classes_per_detection"])
    if dtype == "float32":
        inputs = [Given(coded.shape), Given(scores.shape), weights(anchors)]
    else:
        coded = generator.integers(0, 256, coded.shape).astype(np.uint8)
        # No score is there twice: which of equal ones is the better is for the library to say.
        scores = generator.permutation(boxes * columns).astype(np.uint8).reshape(scores.shape)
        inputs = [
            Given(coded.shape, dtype, None, (0.05,), 120),
            Given(scores.shape, dtype, None, (1 / 256,), 0),
            weights((anchors * 200).astype(np.uint8), scales=(0.005,), zero_point=2),
        ]
    outputs = [Given((1, count, 4)), Given((1, count)), Given((1, count)), Given((1,))]
    return operator_model(CODE, inputs, outputs, ("", told)), [coded, scores]


CASES = {
    "all at once": {},
    "without a background": {"columns": 3},
    "class by class": {"options": {"use_regular_nms": True}},
    "few of a class": {"options": {"use_regular_nms": True, "detections_per_class": 2}},
    "more than there are": {"options": {"nms_score_threshold": 0.97, "use_regular_nms": True}},
    "one detection": {"options": {"max_detections": 1}},
    "two classes of each": {"options": {"max_classes_per_detection": 2}},
    "none of them": {"options": {"nms_score_threshold": 2.0}},
    "with more coded than the box": {"coding": 7},
    "of integers": {"dtype": "uint8"},
    "of integers, class by class": {"dtype": "uint8", "options": {"use_regular_nms": True}},
}


@pytest.mark.parametrize("name", CASES)
def test_detections_are_those_of_litert(name, tmp_path):
    data, arrays = detector(**{"options": {}, **CASES[name]})
    path = tmp_path / "detector.tflite"
    path.write_bytes(data)
    expected = Reference(path).run(arrays)
    session = PoisonedSession(build(path, tmp_path))
    feeds = {port.name: array for port, array in zip(session.inputs, arrays, strict=True)}
    made = list(session.run(feeds).values())
    each = {**OPTIONS, **CASES[name].get("options", {})}["max_classes_per_detection"]
    count = int(expected[3][0])
    np.testing.assert_array_equal(made[3], expected[3])
    # LiteRT leaves what is not detected as it was, ours is zeros.
    for own, other in zip(made[:3], expected[:3], strict=True):
        assert own.shape == other.shape
        np.testing.assert_array_equal(own[:, : count * each], other[:, : count * each])
        assert not own[:, count * each :].any()
    assert (count > 0) == (name != "none of them")


REFUSED = {
    "state no num_classes": {"num_classes": 0},
    "its max_classes_per_detection is -1": {"max_classes_per_detection": -1},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_options_that_make_no_detections_are_refused(reason, tmp_path):
    data, _ = detector(REFUSED[reason])
    path = tmp_path / "detector.tflite"
    path.write_bytes(data)
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)

"""The custom operator that detectors end with, beside LiteRT's."""

import numpy as np
import pytest

from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_layers import DETECTION, detector
from support.tflite_operator import Reference

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
    each = {**DETECTION, **CASES[name].get("options", {})}["max_classes_per_detection"]
    count = int(expected[3][0])
    np.testing.assert_array_equal(made[3], expected[3])
    # LiteRT leaves what is not detected as it was, ours is zeros.
    for own, other in zip(made[:3], expected[:3], strict=True):
        assert own.shape == other.shape
        np.testing.assert_array_equal(own[:, : count * each], other[:, : count * each])
        assert not own[:, count * each :].any()
    assert (count > 0) == (name != "none of them")


REFUSED = {
    "num_classes=0 is unsupported": {"num_classes": 0},
    "h_scale=0.0 is unsupported": {"h_scale": 0.0},
    "nms_iou_threshold=": {"nms_score_threshold": 1e35},
    "max_classes_per_detection=-1 is unsupported": {"max_classes_per_detection": -1},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_options_that_make_no_detections_are_refused(reason, tmp_path):
    data, _ = detector(REFUSED[reason])
    path = tmp_path / "detector.tflite"
    path.write_bytes(data)
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)

"""TFLite operators made of moves or of several of our operators, run beside LiteRT."""

import numpy as np
import pytest

from arenite.runtime import IndexRangeError, Session
from arenite.runtime.lowering import UnsupportedOperatorsError
from support.running import PoisonedSession, build
from support.tflite_operator import Given, Reference, operator_model, weights


def given(*shape, dtype="float32"):
    return Given(shape, dtype)


def integers(values, dtype=np.int32):
    return weights(np.array(values, dtype))


def eight(*shape, scale=0.05, zero_point=3):
    return Given(shape, "int8", None, (scale,), zero_point)


def sliced(source, result, begins, ends, steps, **masks):
    bounds = [integers(each) for each in (begins, ends, steps)]
    return "STRIDED_SLICE", [source, *bounds], [result], ("StridedSliceOptions", masks)


def reduced(code, *axes):
    operands = [given(2, 5, 3, dtype="bool"), integers(axes)]
    shape = [n for axis, n in enumerate((2, 5, 3)) if axis not in axes]
    return code, operands, [given(*shape, dtype="bool")], ("ReducerOptions", {})


X = given(1, 6, 8, 4)
WINDOW = {"strideH": 2, "strideW": 2, "filterHeight": 3, "filterWidth": 3}
COUNTS = given(4, dtype="int32")
CASES = {
    "a slice behind an ellipsis": sliced(
        X, given(1, 6, 8, 2), [0, 1], [0, 3], [1, 1], ellipsisMask=1),
    "a slice before an ellipsis": sliced(
        given(3, 4, 5), given(2, 4, 5), [1, 0], [3, 0], [1, 1], ellipsisMask=2),
    "a slice around an ellipsis": sliced(
        given(3, 4, 5, 2), given(4, 5, 2), [-1, 0, 0], [0, 0, 2], [1, 1, 1], ellipsisMask=2,
        shrinkAxisMask=1),
    "a slice with a new axis": sliced(
        given(3, 4), given(3, 1, 2), [0, 0, 1], [3, 0, 3], [1, 1, 1], newAxisMask=2),
    "a slice with an ellipsis and a new axis": sliced(
        given(3, 4, 2), given(3, 4, 1, 2), [0, 0, 0], [0, 0, 0], [1, 1, 1], ellipsisMask=1,
        newAxisMask=2, endMask=4),
    "a slice backwards": sliced(
        given(3, 4), given(3, 4), [0, 0], [0, 0], [1, -1], beginMask=3, endMask=3),
    "a row of a slice": sliced(
        given(3, 4), given(2), [-1, 0], [3, 4], [1, 2], shrinkAxisMask=1),
    "backwards along two axes": (
        "REVERSE_V2", [given(2, 5, 3), integers([2, -2])], [given(2, 5, 3)],
        ("ReverseV2Options", {})),
    "batches of one axis": (
        "SPACE_TO_BATCH_ND", [given(2, 10, 3), integers([3]), integers([[1, 1]])],
        [given(6, 4, 3)], ("SpaceToBatchNDOptions", {})),
    "one axis of batches": (
        "BATCH_TO_SPACE_ND", [given(6, 4, 3), integers([3]), integers([[1, 1]])],
        [given(2, 10, 3)], ("BatchToSpaceNDOptions", {})),
    "elements by constant indices": (
        "GATHER_ND", [given(4, 5, 3), integers([[1, 2], [3, 4]])], [given(2, 3)],
        ("GatherNdOptions", {})),
    "elements by indices": (
        "GATHER_ND", [given(4, 5, 6, 3), given(6, 2, 3, dtype="int32")], [given(6, 2, 3)],
        ("GatherNdOptions", {})),
    "elements by long indices": (
        "GATHER_ND", [given(4, 5, 3), given(6, 2, dtype="int64")], [given(6, 3)],
        ("GatherNdOptions", {})),
    "rows by indices": (
        "GATHER_ND", [given(4, 5, 3), given(2, 1, dtype="int32")], [given(2, 5, 3)],
        ("GatherNdOptions", {})),
    "rows by indices of a batch": (
        "GATHER", [given(2, 5, 3), given(2, 4, dtype="int32")], [given(2, 4, 3)],
        ("GatherOptions", {"axis": 1, "batchDims": 1})),
    "rows of a table": (
        "EMBEDDING_LOOKUP", [COUNTS, weights(np.arange(18, dtype=np.float32).reshape(6, 3))],
        [given(4, 3)], None),
    "rows put in places": (
        "SCATTER_ND", [integers([[1], [3], [1]]), given(3, 4), integers([5, 4])], [given(5, 4)],
        ("ScatterNdOptions", {})),
    "elements put in places": (
        "SCATTER_ND", [given(6, 2, dtype="int32"), given(6, dtype="int32"), integers([4, 5])],
        [given(4, 5, dtype="int32")], ("ScatterNdOptions", {})),
    "the shape of two that are broadcast": (
        "BROADCAST_ARGS", [integers([3, 1, 4]), integers([2, 1])], [given(3, dtype="int32")],
        None),
    "one of all": (
        "ONE_HOT", [COUNTS, integers(6), integers(2.0, np.float32), integers(-1.0, np.float32)],
        [given(4, 6)], ("OneHotOptions", {"axis": -1})),
    "one of all in front": (
        "ONE_HOT", [COUNTS, integers(6), integers(1, np.int8), integers(0, np.int8)],
        [given(6, 4, dtype="int8")], ("OneHotOptions", {"axis": 0})),
    "the largest": (
        "TOPK_V2", [given(3, 9), integers(4)], [given(3, 4), given(3, 4, dtype="int32")],
        ("TopKV2Options", {})),
    "the largest of many equals": (
        "TOPK_V2", [given(3, 90, dtype="int32"), integers(40)],
        [given(3, 40, dtype="int32"), given(3, 40, dtype="int32")], ("TopKV2Options", {})),
    "the largest of integers": (
        "TOPK_V2", [eight(2, 3, 9), integers(9)], [eight(2, 3, 9), given(2, 3, 9, dtype="int32")],
        ("TopKV2Options", {})),
    "running sums of integers": (
        "CUMSUM", [given(2, 5, dtype="int32"), integers(-1)], [given(2, 5, dtype="int32")],
        ("CumsumOptions", {"exclusive": True, "reverse": True})),
    "a sum of three": (
        "ADD_N", [given(2, 3)] * 3, [given(2, 3)], ("AddNOptions", {})),
    "zeros": ("ZEROS_LIKE", [given(2, 3)], [given(2, 3)], ("ZerosLikeOptions", {})),
    "one number everywhere": (
        "FILL", [integers([2, 3]), given()], [given(2, 3)], ("FillOptions", {})),
    "any": reduced("REDUCE_ANY", 1),
    "all": reduced("REDUCE_ALL", 0, 2),
    "rows by a truth each": (
        "SELECT", [given(2, dtype="bool"), given(2, 3), given(2, 3)], [given(2, 3)],
        ("SelectOptions", {})),
    "the root of the mean of squares": (
        "L2_POOL_2D", [X], [given(1, 3, 4, 4)], ("Pool2DOptions", WINDOW)),
    "the nearest, corners on corners": (
        "RESIZE_NEAREST_NEIGHBOR", [X, integers([11, 15])], [given(1, 11, 15, 4)],
        ("ResizeNearestNeighborOptions", {"alignCorners": True})),
    "a comparison of integers": (
        "LESS", [eight(2, 90), eight(2, 90)], [given(2, 90, dtype="bool")], ("LessOptions", {})),
    "rows of integers divided by their norm": (
        "L2_NORMALIZATION", [eight(4, 8)], [eight(4, 8, scale=1 / 128, zero_point=0)],
        ("L2NormOptions", {})),
    "a softmax of integers of 16 bits": (
        "SOFTMAX", [Given((3, 9), "int16", None, (0.001,), 0)],
        [Given((3, 9), "int16", None, (1 / 32768,), 0)], ("SoftmaxOptions", {"beta": 1.0})),
    "products of matrices of integers": (
        "BATCH_MATMUL", [eight(2, 3, 4), eight(2, 5, 4, scale=0.02, zero_point=-7)],
        [eight(2, 3, 5, scale=0.1)], ("BatchMatMulOptions", {"adjY": True})),
}  # fmt: skip


def feed(port, generator):
    """Numbers, truths, indices from 0 to 3, or any integers of 8 bits."""
    if port.dtype.kind == "f":
        return generator.standard_normal(port.shape).astype(port.dtype)
    if port.dtype.itemsize < 4 and port.dtype.kind == "i":
        limits = np.iinfo(port.dtype)
        return generator.integers(limits.min, limits.max, port.shape).astype(port.dtype)
    most = 2 if port.dtype.kind == "b" else 4
    return generator.integers(0, most, port.shape).astype(port.dtype.name)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_what_litert_gives(name, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(*CASES[name]))
    session = PoisonedSession(build(path, tmp_path))
    reference = Reference(path)
    generator = np.random.default_rng(7)
    for _ in range(3):
        feeds = {port.name: feed(port, generator) for port in session.inputs}
        expected = reference.run(list(feeds.values()))
        for own, other in zip(session.run(feeds).values(), expected, strict=True):
            assert (own.dtype, own.shape) == (other.dtype, other.shape)
            # Integers of 8 bits that stand for numbers: within one quantum.
            quanta = {1: 1}.get(own.dtype.itemsize, 0)
            tolerance = {"f": 1e-5, "i": quanta}.get(own.dtype.kind, 0)
            difference = np.abs(own.astype(np.float64) - other.astype(np.float64))
            assert np.max(difference, initial=0) <= tolerance


def test_a_guarded_session_refuses_to_scatter_beyond_the_result(tmp_path):
    path = tmp_path / "one.tflite"
    operands = [given(2, 1, dtype="int32"), given(2, 4), integers([5, 4])]
    path.write_bytes(
        operator_model("SCATTER_ND", operands, [given(5, 4)], ("ScatterNdOptions", {}))
    )
    with Session(build(path, tmp_path), guard=True) as session:
        places, rows = (port.name for port in session.inputs)
        feeds = {places: np.array([[1], [4]], np.int32), rows: np.ones((2, 4), np.float32)}
        (made,) = session.run(feeds).values()
        np.testing.assert_array_equal(np.flatnonzero(made.any(1)), [1, 4])
        for beyond in (5, -1):
            feeds[places][0] = beyond
            with pytest.raises(IndexRangeError, match=f"index {beyond} is not in 0 to 4"):
                session.run(feeds)


def test_a_guarded_session_checks_every_index_of_several_axes(tmp_path):
    path = tmp_path / "one.tflite"
    operands = [given(4, 5, 2), given(3, 2, dtype="int32")]
    path.write_bytes(operator_model("GATHER_ND", operands, [given(3, 2)], ("GatherNdOptions", {})))
    with Session(build(path, tmp_path), guard=True) as session:
        data, places = (port.name for port in session.inputs)
        rows = np.random.default_rng(0).random((4, 5, 2), np.float32)
        feeds = {data: rows, places: np.array([[0, 0], [3, 4], [1, 2]], np.int32)}
        (made,) = session.run(feeds).values()
        np.testing.assert_array_equal(made, rows[[0, 3, 1], [0, 4, 2]])
        for beyond in ([1, 5], [2, -1], [-1, 5], [4, -5], [4, 0]):  # as one index, all but one fit
            feeds[places][1] = beyond
            with pytest.raises(IndexRangeError):
                session.run(feeds)


SIXTEEN = Given((1, 6), "int16", None, (0.001,), 0)
REFUSED = {
    "element type int16 is": ("DIV", [SIXTEEN, SIXTEEN], [SIXTEEN], ("DivOptions", {})),
    "begin, end and strides do not fit": sliced(given(3), given(3), [0, 0], [3, 3], [1, 1]),
    "an ellipsis for no axis": sliced(
        given(3, 4), given(2, 2), [1, 0, 1], [3, 0, 3], [1, 1, 1], ellipsisMask=2),
    "k=10 does not fit": (
        "TOPK_V2", [given(3, 9), integers(10)], [given(3, 10), given(3, 10, dtype="int32")],
        ("TopKV2Options", {})),
    "has more than 4096 places": (
        "SPACE_TO_BATCH_ND", [given(1, 4, 2), integers([5000]), integers([[4996, 0]])],
        [given(5000, 1, 2)], ("SpaceToBatchNDOptions", {})),
    "depth=1048577 is unsupported": (
        "ONE_HOT", [COUNTS, integers(2**20 + 1), integers(1.0, np.float32),
                    integers(0.0, np.float32)],
        [given(4, 2**20 + 1)], ("OneHotOptions", {"axis": -1})),
    "block_shape does not fit rank 1": (
        "SPACE_TO_BATCH_ND", [given(4), integers([2]), integers([[0, 0]])], [given(4)],
        ("SpaceToBatchNDOptions", {})),
    "do not fit an input of shape": (
        "GATHER_ND", [given(4, 5), given(6, 3, dtype="int32")], [given(6)],
        ("GatherNdOptions", {})),
    "axis 0 does not exist": (
        "GATHER", [given(), given(2, dtype="int32")], [given(2)], ("GatherOptions", {})),
    "an input is not constant": (
        "BROADCAST_ARGS", [given(3, dtype="int32"), integers([2, 1])], [given(3, dtype="int32")],
        None),
    "do not fit an output of shape": (
        "SCATTER_ND", [integers([[1]]), given(1, 4), integers([5, 4])], [given(5, 3)],
        ("ScatterNdOptions", {})),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_what_we_do_not_compute_is_refused_before_a_file_exists(reason, tmp_path):
    path = tmp_path / "one.tflite"
    path.write_bytes(operator_model(*REFUSED[reason]))
    with pytest.raises(UnsupportedOperatorsError, match=reason):
        build(path, tmp_path)
    assert not (tmp_path / "model.arena").exists()

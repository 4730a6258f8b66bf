"""Models over time on the rows of a hop, beside the same models on whole windows."""

from dataclasses import dataclass

import numpy as np
import pytest

from arenite.pipeline.making.programs import session_of
from arenite.pipeline.targets.compiling import lower_model
from arenite.planner import DType, TensorKind
from arenite.runtime.rewrites import Hops, NotStreamedError, Padding, streamed
from support.quantised_onnx import FORMS, quantised
from support.running import assert_same, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

RUNS = 20


@dataclass(frozen=True)
class Case:
    """A model over time.

    Attributes:
        text: The model; its input x has `window` rows along `axis`.
        whole: How many steps are the first to compute the whole window.
    """

    text: str
    axis: int
    window: int
    hop: int
    whole: int = 0


EXACT = {
    "convolutions": Case(
        "(float[1,6,24] x) => (y) <float[8,6,3] w, float[4,8,5] v> "
        "{a = Conv(x, w) b = Relu(a) y = Conv(b, v)}", 2, 24, 4),
    "a dilated convolution": Case(
        "(float[1,6,24] x) => (y) <float[8,6,3] w> {y = Conv<dilations=[3]>(x, w)}", 2, 24, 2),
    "strides": Case(
        "(float[1,6,25] x) => (y) <float[8,6,3] w, float[4,8,3] v> "
        "{a = Conv<strides=[2]>(x, w) b = Relu(a) y = Conv<strides=[2]>(b, v)}", 2, 25, 4),
    "a stride beyond the window": Case(
        "(float[1,6,24] x) => (y) <float[8,6,2] w> {y = Conv<strides=[4]>(x, w)}", 2, 24, 8),
    "padding in front, the newest row alone": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,6,3] v, int64[1] s={23}, "
        "int64[1] e={24}, int64[1] t={2}> {a = Conv<pads=[2,0]>(x, w) b = Relu(a) "
        "c = Conv<pads=[4,0], dilations=[2]>(b, v) d = Add(c, b) y = Slice(d, s, e, t)}",
        2, 24, 4),
    "branches of different delays": Case(
        "(float[1,6,24] x) => (y) <float[6,6,5] w, float[6,6,3] v, int64[1] s={1}, "
        "int64[1] e={21}, int64[1] t={2}> "
        "{a = Conv(x, w) b = Conv(x, v) c = Slice(b, s, e, t) y = Add(a, c)}", 2, 24, 4),
    "channels side by side": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,6,3] v> "
        "{a = Conv(x, w) b = Conv(x, v) y = Concat<axis=1>(a, b)}", 2, 24, 4),
    "images and a pool": Case(
        "(float[1,6,24,5] x) => (y) <float[6,6,3,3] w> {a = Conv<pads=[0,1,0,1]>(x, w) "
        "y = MaxPool<kernel_shape=[2,1], strides=[2,1]>(a)}", 2, 24, 4),
    "a product and a softmax of each row": Case(
        "(float[1,24,6] x) => (y) <float[6,7] w> {a = MatMul(x, w) y = Softmax(a)}", 1, 24, 5),
    "a transpose on both sides": Case(
        "(float[1,24,6] x) => (y) <float[7,6,3] w> {t = Transpose<perm=[0,2,1]>(x) "
        "a = Conv(t, w) y = Transpose<perm=[0,2,1]>(a)}", 1, 24, 4),
    "a mean over the window": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w> {a = Conv(x, w) y = GlobalAveragePool(a)}",
        2, 24, 4, whole=1),
    "a product over the window": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[132,5] g> "
        "{a = Conv(x, w) f = Flatten(a) y = Gemm(f, g)}", 2, 24, 4, whole=1),
    "padding of the window": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,6,3] v> {a = Conv(x, w) b = Relu(a) "
        "c = Conv<pads=[1,1]>(b, v) y = Add(c, a)}", 2, 24, 4),
    "padding in each layer, before a mean": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,6,5] v> {a = Conv<pads=[1,1]>(x, w) "
        "b = Relu(a) c = Conv<pads=[2,2]>(b, v) d = Add(c, b) y = GlobalAveragePool(d)}",
        2, 24, 4, whole=1),
    "padding and strides": Case(
        "(float[1,6,40] x) => (y) <float[6,6,5] w, float[6,1,3] v, float[6,6,1] u> "
        "{a = Conv<pads=[2,1], strides=[2]>(x, w) b = Relu(a) "
        "c = Conv<pads=[1,1], group=6>(b, v) d = Conv(c, u) y = GlobalAveragePool(d)}",
        2, 40, 4, whole=1),
    "padding, of which the newest rows need a part": Case(
        "(float[1,6,32] x) => (y) <float[6,6,3] w, float[6,6,3] v> {a = Conv<pads=[1,1]>(x, w) "
        "b = Relu(a) c = Conv<pads=[2,2], dilations=[2]>(b, v) d = Add(c, b) "
        "e = Conv<pads=[4,4], dilations=[4]>(d, v) f = Add(e, d) y = Relu(f)}", 2, 32, 4),
    "padding of pools": Case(
        "(float[1,6,24] x) => (y) {a = AveragePool<kernel_shape=[4], pads=[2,1]>(x) "
        "b = AveragePool<kernel_shape=[3], pads=[1,1], count_include_pad=1>(a) "
        "c = MaxPool<kernel_shape=[3], strides=[2], pads=[1,1]>(b) y = GlobalAveragePool(c)}",
        2, 24, 2, whole=1),
    "padding that leaves few rows": Case(
        "(float[1,6,16] x) => (y) <float[6,6,3] w, float[6,6,9] v> {a = Conv(x, w) "
        "b = Conv<pads=[4,4]>(a, v) c = Conv<pads=[4,4]>(b, v) y = GlobalAveragePool(c)}",
        2, 16, 2, whole=2),
    "padding before a stride that does not divide the hop": Case(
        "(float[1,6,25] x) => (y) <float[8,6,3] w, float[4,8,3] v> {a = Conv<pads=[1,1]>(x, w) "
        "b = Relu(a) y = Conv<strides=[2]>(b, v)}", 2, 25, 3, whole=1),
    "padding of images, with columns between": Case(
        "(float[1,3,20,8] x) => (y) <float[4,3,3,3] w, float[4,4,3,3] v> "
        "{a = Conv<pads=[1,1,1,1], strides=[1,2]>(x, w) b = Relu(a) "
        "c = Conv<pads=[1,1,1,1]>(b, v) y = GlobalAveragePool(c)}", 2, 20, 2, whole=1),
    "a stride that does not divide the hop": Case(
        "(float[1,6,25] x) => (y) <float[8,6,3] w, float[4,8,3] v> "
        "{a = Conv(x, w) b = Relu(a) y = Conv<strides=[2]>(b, v)}", 2, 25, 3, whole=1),
    "a transposed convolution of the window": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,4,4] v> "
        "{a = Conv(x, w) y = ConvTranspose<strides=[2]>(a, v)}", 2, 24, 4),
    "a transposed convolution with padding on both sides": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,4,4] v, float[4,4,3] u> "
        "{a = Conv<pads=[1,1]>(x, w) b = ConvTranspose<strides=[2], pads=[1,1]>(a, v) "
        "c = Conv<pads=[1,1]>(b, u) y = GlobalAveragePool(c)}", 2, 24, 4, whole=1),
    "a gate of the window on older rows": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,6,1] u, float[6,6,3] v> "
        "{a = Conv(x, w) g = GlobalAveragePool(a) s = Conv(g, u) q = Sigmoid(s) m = Mul(a, q) "
        "y = Conv(m, v)}", 2, 24, 4, whole=2),
    "a gate of the window on the newest rows": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w> {a = Conv(x, w) g = GlobalAveragePool(a) "
        "q = Sigmoid(g) y = Mul(a, q)}", 2, 24, 4, whole=1),
    "a gate of the window, each window padded": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,6,3] v> {a = Conv<pads=[1,1]>(x, w) "
        "g = GlobalAveragePool(a) q = Sigmoid(g) m = Mul(a, q) b = Conv<pads=[1,1]>(m, v) "
        "y = GlobalAveragePool(b)}", 2, 24, 4, whole=3),
    "images of a video, and a convolution over their features": Case(
        "(float[12,3,8,8] x) => (y) <float[6,3,3,3] w, float[4,6,3] v, int64[3] s={1,12,6}> "
        "{a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w) b = MaxPool<kernel_shape=[2,2]>(a) "
        "g = GlobalAveragePool(b) r = Reshape(g, s) t = Transpose<perm=[0,2,1]>(r) "
        "c = Conv(t, v) y = GlobalAveragePool(c)}", 0, 12, 2, whole=1),
    "a recurrent layer that begins with each window": Case(
        "(float[12,1,6] x) => (y) <float[6,6] m, float[1,9,6] w, float[1,9,3] r> "
        "{a = MatMul(x, m) y, h = GRU<hidden_size=3>(a, w, r)}", 0, 12, 3, whole=1),
}  # fmt: skip


def newest(array, like):
    """Return the newest rows of an array, as many as another one has."""
    for axis, (length, wanted) in enumerate(zip(array.shape, like.shape, strict=True)):
        array = np.take(array, range(length - wanted, length), axis=axis)
    return array


def rows_of(shape, axis, length):
    """Return random numbers with so many rows along an axis."""
    shape = (*shape[:axis], length, *shape[axis + 1 :])
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def lowered(tmp_path, text, length=None):
    """Return the program of a model; LENGTH stands for rows in its text."""
    text = text if length is None else text.replace("LENGTH", str(length))
    return lower_model(save(tmp_path, with_random_weights(parse(text)))).program


@pytest.mark.parametrize("name", EXACT)
def test_outputs_are_those_of_the_window_that_ends_at_the_hop(tmp_path, name):
    case = EXACT[name]
    path = save(tmp_path, with_random_weights(parse(case.text)))
    program = lower_model(path).program
    found = streamed(program, Hops("x", case.axis, case.hop))
    assert (len(found.whole), found.late, found.alters) == (case.whole, 0, False)
    assert found.window == case.window
    assert found.warm_up <= -(-case.window // case.hop)
    shape = program.inputs[0].shape(program.tensors[program.inputs[0].tensor].shape)
    x = rows_of(shape, case.axis, RUNS * case.hop)
    compared = 0
    with session_of(program) as windows, session_of(found.program) as hops:
        for run in range(RUNS):
            end = (run + 1) * case.hop
            made = hops.run({"x": np.take(x, range(end - case.hop, end), axis=case.axis)})
            if run + 1 < found.warm_up or end < case.window:
                continue
            window = {"x": np.take(x, range(end - case.window, end), axis=case.axis)}
            for output, array in windows.run(window).items():
                np.testing.assert_array_equal(made[output], newest(array, made[output]))
            compared += 1
            if run + 1 == RUNS:
                theirs = reference_outputs(path, window)
                assert_same(made, {name: newest(theirs[name], made[name]) for name in made})
    assert compared >= 9


EXACT_IN_PARTS = EXACT | {
    "few rows behind a stride": Case(
        "(float[1,6,24] x) => (y) <float[6,6,3] w, float[6,6,2] v> {a = Conv(x, w) "
        "b = MaxPool<kernel_shape=[4], strides=[4]>(a) c = Conv(b, v) y = Conv(c, v)}", 2, 24, 16),
}  # fmt: skip
IN_PARTS = [
    ("few rows behind a stride", 2),
    ("convolutions", 2), ("convolutions", 4), ("strides", 2), ("branches of different delays", 2),
    ("a mean over the window", 4), ("a product over the window", 2),
    ("a transpose on both sides", 2), ("channels side by side", 2),
    ("a product and a softmax of each row", 5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parts"), IN_PARTS)
def test_a_hop_in_parts_makes_the_same(tmp_path, name, parts):
    case = EXACT_IN_PARTS[name]
    hop = case.hop * parts if name == "strides" else case.hop
    program = lowered(tmp_path, case.text)
    whole = streamed(program, Hops("x", case.axis, hop))
    found = streamed(program, Hops("x", case.axis, hop, parts=parts))
    assert found.program.multiply_adds == whole.program.multiply_adds
    shape = program.inputs[0].shape(program.tensors[program.inputs[0].tensor].shape)
    x = rows_of(shape, case.axis, RUNS * hop)
    with session_of(whole.program) as hops, session_of(found.program) as ours:
        for start in range(0, RUNS * hop, hop):
            given = {"x": np.take(x, range(start, start + hop), axis=case.axis)}
            expected = hops.run(given)
            if start // hop + 1 >= max(whole.warm_up, found.warm_up):
                np.testing.assert_array_equal(ours.run(given)["y"], expected["y"])
            else:
                ours.run(given)


QUANTISED = (
    "(float[1,6,24,5] x) => (y) <float[8,6,3,3] w, float[8] b, float[8,1,5,3] d, float[8,8,1,1] "
    "p, float[4,8] g, int64[2] s = {1,8}> {c = Conv<pads=[0,1,0,1]>(x, w, b) r = Relu(c) "
    "e = Conv<group=8, pads=[0,1,0,1]>(r, d) f = Conv(e, p) q = GlobalAveragePool(f) "
    "h = Reshape(q, s) y = Gemm<transB=1>(h, g)}"
)


@pytest.mark.parametrize("form", ["qdq, signed", "qlinear", "qlinear, rows padded"])
def test_integers_are_those_of_the_window(tmp_path, form):
    form, _, is_padded = form.partition(", rows ")
    text = QUANTISED.replace("pads=[0,1,0,1]", "pads=[1,1,1,1]") if is_padded else QUANTISED
    program = lower_model(quantised(tmp_path, FORMS[form], text)).program
    found = streamed(program, Hops("x", 2, 4))
    assert found.program.multiply_adds * (2 if is_padded else 4) < program.multiply_adds
    states = [each for each in found.program.tensors.values() if each.kind is TensorKind.STATE]
    sums = [each.dtype for each in states].count(DType.INT16)  # to be averaged
    assert sums == (0 if is_padded else 1)
    x = np.random.default_rng(1).uniform(-2, 2, (1, 6, 80, 5)).astype(np.float32)
    with session_of(program) as windows, session_of(found.program) as hops:
        for end in range(4, 81, 4):
            made = hops.run({"x": x[:, :, end - 4 : end]})["y"]
            if end >= 24:
                expected = windows.run({"x": x[:, :, end - 24 : end]})["y"]
                np.testing.assert_array_equal(made, expected)


OF_THE_STREAM = {
    "convolutions": (
        "(float[1,6,LENGTH] x) => (y) <float[6,6,3] w, float[6,6,5] v> "
        "{a = Conv<pads=[1,1]>(x, w) b = Relu(a) c = Conv<pads=[2,2]>(b, v) y = Add(c, x)}", 3),
    "strides": (
        "(float[1,6,LENGTH] x) => (y) <float[6,6,3] w, float[6,6,5] v> "
        "{a = Conv<pads=[1,1], strides=[2]>(x, w) b = Relu(a) y = Conv<pads=[2,2]>(b, v)}", 4),
    "a pool": (
        "(float[1,6,LENGTH] x) => (y) <float[6,6,3] w> {a = Conv(x, w) "
        "y = AveragePool<kernel_shape=[4], strides=[2], pads=[1,1]>(a)}", 2),
    "a transposed convolution": (
        "(float[1,1,LENGTH] x) => (y) <float[6,1,4] w, float[6,1,4] v> "
        "{a = Conv<strides=[2]>(x, w) b = Relu(a) y = ConvTranspose<strides=[2]>(b, v)}", 2),
    "a transposed convolution with gaps": (
        "(float[1,1,LENGTH] x) => (y) <float[6,1,4] w, float[6,1,2] v> "
        "{a = Conv<strides=[2]>(x, w) b = Relu(a) "
        "y = ConvTranspose<strides=[2], dilations=[2]>(b, v)}", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_THE_STREAM)
def test_padding_of_the_stream_is_there_once(tmp_path, name):
    text, late = OF_THE_STREAM[name]
    window, hop = 24, 4
    program, whole = (lowered(tmp_path, text, rows) for rows in (window, RUNS * hop))
    found = streamed(program, Hops("x", 2, hop, Padding.STREAM))
    assert (found.whole, found.late, found.alters) == ((), late, True)
    x = rows_of(program.tensors["x"].shape, 2, RUNS * hop)
    (output,) = program.outputs
    of_window = output.shape(program.tensors[output.tensor].shape)[2]
    with session_of(whole) as session:
        expected = session.run({"x": x})["y"]
    with session_of(found.program) as session:
        for run in range(RUNS):
            made = session.run({"x": x[..., run * hop : (run + 1) * hop]})["y"]
            rows = made.shape[2]
            # How long the output is where the window ends.
            length = of_window + (run + 1) * rows - window * rows // hop
            end = length - late * rows // hop
            if run + 1 >= found.warm_up and end >= rows:
                np.testing.assert_array_equal(made, expected[..., end - rows : end])


def test_a_recurrent_layer_of_the_stream_goes_on_from_its_state(tmp_path):
    text = (
        "(float[LENGTH,1,6] x) => (y, h, c) <float[1,12,6] w, float[1,12,3] r, float[6,6] m, "
        "float[1,1,3] s> {a = MatMul(x, m) y, h, c = LSTM<hidden_size=3>(a, w, r, , , s, s)}"
    )
    program, whole = (lowered(tmp_path, text, rows) for rows in (12, 5 * 3))
    found = streamed(program, Hops("x", 0, 3, Padding.STREAM))
    assert (found.whole, found.late, found.alters) == ((), 0, True)
    x = rows_of((1, 1, 6), 0, 15)
    with session_of(whole) as session:
        expected = session.run({"x": x})
    with session_of(found.program) as session:
        made = [session.run({"x": x[start : start + 3]}) for start in range(0, 15, 3)]
    np.testing.assert_array_equal(np.concatenate([each["y"] for each in made]), expected["y"])
    np.testing.assert_array_equal(made[-1]["h"], expected["h"])
    np.testing.assert_array_equal(made[-1]["c"], expected["c"])


def test_a_reset_begins_a_new_stream(tmp_path):
    case = EXACT["convolutions"]
    program = lowered(tmp_path, case.text)
    found = streamed(program, Hops("x", case.axis, case.hop)).program
    x = rows_of((1, 6, 4), 2, case.hop)
    with session_of(found) as session:
        first = session.run({"x": x})["y"]
        assert not np.array_equal(session.run({"x": x})["y"], first)
        session.reset()
        np.testing.assert_array_equal(session.run({"x": x})["y"], first)


def test_a_second_input_is_read_at_each_run(tmp_path):
    text = (
        "(float[1,6,24] x, float[1,6,1] z) => (y) <float[6,6,3] w> {a = Conv(x, w) y = Mul(a, z)}"
    )
    program = lowered(tmp_path, text)
    found = streamed(program, Hops("x", 2, 4))
    x, z = rows_of((1, 6, 4), 2, 8), rows_of((1, 6, 1), 2, 1)
    window = np.concatenate([np.zeros((1, 6, 16), np.float32), x], axis=2)
    with session_of(program) as windows, session_of(found.program) as hops:
        hops.run({"x": x[..., :4], "z": z})
        made = hops.run({"x": x[..., 4:], "z": 2 * z})["y"]
        expected = windows.run({"x": window, "z": 2 * z})["y"]
    np.testing.assert_array_equal(made, expected[..., -4:])


def test_states_keep_the_rows_of_all_readers_once(tmp_path):
    text = (
        "(float[1,6,24] x) => (y, z) <float[6,6,1] u, float[6,6,5] w, float[6,6,3] v> "
        "{a = Conv(x, u) y = Conv(a, w) z = Conv(a, v)}"
    )
    program = lowered(tmp_path, text)
    found = streamed(program, Hops("x", 2, 4)).program
    states = [each for each in found.tensors.values() if each.kind is TensorKind.STATE]
    assert [each.shape for each in states] == [(1, 1, 4, 6)]


MODEL = EXACT["convolutions"].text
REFUSED = {
    "an unknown input": (MODEL, Hops("z", 2, 4), "is not an input of the model; inputs: 'x'"),
    "an unknown axis": (MODEL, Hops("x", 3, 4), "has no axis 3; its axes are 0 to 2"),
    "no hop": (MODEL, Hops("x", 2, 0), "a hop of 0 is not between 1 and 23"),
    "a hop of the window": (MODEL, Hops("x", 2, 24), "a hop of 24 is not between 1 and 23"),
    "an axis that is summed over": (MODEL, Hops("x", 1, 2), "depends on all rows of the window"),
    "a mean of the input": (
        "(float[1,24,6] x) => (y) {y = ReduceMean<axes=[1]>(x)}", Hops("x", 1, 4),
        "depends on all rows of the window"),
    "padding in all rows": (
        "(float[1,6,8] x) => (y) <float[6,6,7] w> {a = Conv<pads=[3,3]>(x, w) "
        "y = GlobalAveragePool(a)}", Hops("x", 2, 2), "pads rows along the axis of the stream"),
    "parts of a hop that has no such": (
        MODEL, Hops("x", 2, 4, parts=3), "cannot be computed in 3 parts of a hop of 4 rows"),
    "parts of an output that is padded": (
        EXACT["padding of the window"].text, Hops("x", 2, 4, parts=2), "the hop takes one part"),
    "parts that a stride does not divide": (
        EXACT["strides"].text, Hops("x", 2, 4, parts=2), "does not run on 2 rows, a part of the"),
    "parts that read a mean of the window": (
        EXACT["a gate of the window on the newest rows"].text, Hops("x", 2, 4, parts=2),
        "reads what is computed for the whole window"),
    "recurrent layers of a window": (
        "(float[12,1,6] x) => (y) <float[1,9,6] w, float[1,9,3] r> "
        "{y, h = GRU<hidden_size=3>(x, w, r)}", Hops("x", 0, 3),
        "starts from the same state for each window"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_run_on_a_stream_is_refused(tmp_path, name):
    text, hops, reason = REFUSED[name]
    program = lowered(tmp_path, text)
    with pytest.raises(NotStreamedError, match=reason):
        streamed(program, hops)


def test_a_model_with_states_runs_on_a_stream_already(tmp_path):
    program = lowered(tmp_path, MODEL)
    found = streamed(program, Hops("x", 2, 4)).program
    with pytest.raises(NotStreamedError, match="is a state: the model runs on a stream as it is"):
        streamed(found, Hops("x", 2, 2))

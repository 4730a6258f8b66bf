"""Sizes that a run counts: operators that find elements, and what reads their results."""

import numpy as np
import onnxruntime
import pytest

import arenite
from arenite.planner.sizes import Dimension
from arenite.runtime import ProgramError, Session, UnwritableProgramError
from arenite.runtime.operators import Copy, Move
from arenite.runtime.program.sizing import Sizing
from support.detectors import DETECTORS, SSD, YOLO
from support.edited_programs import apart, edited
from support.running import PoisonedSession, build
from support.tiny_onnx import parse, save

GENERATOR = np.random.default_rng(11)

CASES = {
    "places": "(float[4,5] x) => (int64[2,n] y) {y = NonZero(x)}",
    "places of an image": "(float[2,3,4] x) => (int64[n,3] y) "
    "{z = NonZero(x) y = Transpose<perm=[1,0]>(z)}",
    "places of truth": "(float[30] x) => (int64[1,n] y) <float t = {0.2}> "
    "{c = Greater(x, t) y = NonZero(c)}",
    "places of integers": "(int32[30] x) => (int64[n] y) <int64[1] a = {0}> "
    "{z = NonZero(x) y = Squeeze(z, a)}",
    "how many": "(float[4,5] x) => (int64[2] y, int64[1] k, float m) <int64[1] zero = {0}> "
    "{z = NonZero(x) y = Shape(z) k = Shape<start=1>(z) n = Size(z) m = Cast<to=1>(n)}",
    "rows that are taken": "(float[6,3] x, bool[6] c) => (float[n,3] y) "
    "{y = Compress<axis=0>(x, c)}",
    "columns that are taken": "(float[3,6] x, bool[5] c) => (float[3,n] y) "
    "{z = Compress<axis=1>(x, c) y = Abs(z)}",
    "elements that are taken": "(float[3,6] x, bool[18] c) => (float[n] y) {y = Compress(x, c)}",
    "slices behind the places": "(float[20] s, float[20,4] x) => (float[n,4] y, float[n] v) "
    "<float t = {0}, int64[1] a = {0}> "
    "{c = Greater(s, t) z = NonZero(c) i = Squeeze(z, a) y = Gather(x, i) v = Gather(s, i)}",
    "elements behind the places": "(float[4,5] x) => (float[n] y) <float t = {0}> "
    "{c = Greater(x, t) z = NonZero(c) i = Transpose<perm=[1,0]>(z) y = GatherND(x, i)}",
    "arithmetic on what is found": "(float[20] s, float[20,4] x) => (float[n,4] y) "
    "<float t = {0}, int64[1] a = {0}, int64[1] b = {1}, float[4] w = {1,2,3,4}> "
    "{c = Greater(s, t) z = NonZero(c) i = Squeeze(z, a) g = Gather(x, i) v = Gather(s, i) "
    "u = Unsqueeze(v, b) m = Mul(g, u) p = Add(m, w) q = Sigmoid(p) y = Sub(q, w)}",
    "the largest of what is found": "(float[20] x) => (float[n] v, int64[n] i) "
    "<float t = {0}, int64[1] a = {0}, int64[1] most = {6}> "
    "{c = Greater(x, t) z = NonZero(c) p = Squeeze(z, a) g = Gather(x, p) h = Shape(g) "
    "k = Min(h, most) v, i = TopK(g, k)}",
    "the first of what is found": "(float[20] x) => (float[n] y) <float t = {0}, "
    "int64[1] a = {0}, int64[1] s = {0}, int64[1] e = {5}> "
    "{c = Greater(x, t) z = NonZero(c) p = Squeeze(z, a) g = Gather(x, p) y = Slice(g, s, e)}",
    "the last of what is found": "(float[20,2] x) => (int64[2,n] y) <int64[1] a = {1}, "
    "int64[1] s = {3}, int64[1] e = {1000}> {z = NonZero(x) y = Slice(z, s, e, a)}",
    "what is found, reshaped": "(float[20,6] x, float[20] s) => (float[n,3,2] y) <float t = {0}, "
    "int64[1] a = {0}, int64[3] r = {-1,2,3}> "
    "{c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) g = Gather(x, p) h = Reshape(g, r) "
    "y = Transpose<perm=[0,2,1]>(h)}",
    "what is found, turned": "(float[20,6] x, float[20] s) => (float[6,n] y) <float t = {0}, "
    "int64[1] a = {0}> {c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) g = Gather(x, p) "
    "h = Transpose<perm=[1,0]>(g) y = Softmax<axis=0>(h)}",
    "what is found, joined": "(float[20,6] x, float[20] s) => (float[n,8] y) <float t = {0}, "
    "int64[1] a = {0}, int64[1] b = {1}> {c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) "
    "g = Gather(x, p) v = Gather(s, p) u = Unsqueeze(v, b) f = Cast<to=1>(p) "
    "w = Unsqueeze(f, b) y = Concat<axis=1>(u, g, w)}",
    "what is found twice, one behind the other": "(float[9] x, float[7] s) => (float[n] y) "
    "<float t = {0}, int64[1] a = {0}> {c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) "
    "g = Gather(s, p) d = Less(x, t) q = NonZero(d) r = Squeeze(q, a) h = Gather(x, r) "
    "y = Concat<axis=0>(g, h)}",
    "what is found among what is found": "(float[30] x) => (float[n] y) <float t = {-0.5}, "
    "float u = {0.5}, int64[1] a = {0}> {c = Greater(x, t) z = NonZero(c) p = Squeeze(z, a) "
    "g = Gather(x, p) d = Less(g, u) w = NonZero(d) q = Squeeze(w, a) y = Gather(g, q)}",
    "the best class of what is found": "(float[20,5] x, float[20] s) => (float[n] y, int64[n] i) "
    "<float t = {0}, int64[1] a = {0}> {c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) "
    "g = Gather(x, p) y = ReduceMax<axes=[1], keepdims=0>(g) i = ArgMax<axis=1, keepdims=0>(g)}",
    "a sum of what is found": "(float[20,5] x, float[20] s) => (float[5] y) "
    "<float t = {0}, int64[1] a = {0}> {c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) "
    "g = Gather(x, p) y = ReduceSum<keepdims=0>(g, a)}",
    "chosen of what is found": "(float[20,5] x, float[20] s) => (float[n,5] y) "
    "<float t = {0}, int64[1] a = {0}> {c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) "
    "g = Gather(x, p) d = Greater(g, t) n = Neg(g) y = Where(d, g, n)}",
    "a layer over what is found": "(float[20,5] x, float[20] s) => (float[n,3] y) "
    "<float t = {0}, int64[1] a = {0}, float[5,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6}> "
    "{c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) g = Gather(x, p) y = MatMul(g, w)}",
    "ones for what is found": "(float[20] s) => (float[n,2] y) <float t = {0}, int64[1] a = {0}, "
    "int64[1] two = {2}> {c = Greater(s, t) z = NonZero(c) p = Squeeze(z, a) h = Shape(p) "
    "r = Concat<axis=0>(h, two) y = ConstantOfShape<value = float[1] {1}>(r)}",
    "ones times what is found": "(float[20] x) => (float[n,2] y) <float t = {0}, "
    "int64[1] a = {0}, int64[1] two = {2}> "
    "{c = Greater(x, t) z = NonZero(c) p = Squeeze(z, a) h = Shape(p) v = Gather(x, p) "
    "r = Concat<axis=0>(two, h) o = ConstantOfShape<value = float[1] {1}>(r) m = Mul(o, v) "
    "y = Transpose<perm=[1,0]>(m)}",
}  # fmt: skip


def feeds_of(peer, density):
    """Inputs of which about so many elements are above 0, none or all of them at the ends."""
    feeds = {}
    for each in peer.get_inputs():
        if each.name == "boxes":
            low = GENERATOR.uniform(0, 1, (*each.shape[:-1], 2))
            feeds["boxes"] = np.concatenate([low, low + GENERATOR.uniform(0, 0.6, low.shape)], -1)
        else:
            signs = GENERATOR.random(each.shape) < density
            if "float" in each.type:
                drawn = np.abs(GENERATOR.uniform(0.01, 1.2, each.shape))
                feeds[each.name] = np.where(signs, drawn, 0 if each.name == "x" else -drawn)
            else:
                feeds[each.name] = signs
        dtype = {"tensor(float)": "float32", "tensor(bool)": "bool", "tensor(int32)": "int32"}
        feeds[each.name] = feeds[each.name].astype(dtype[each.type])
    return feeds


def assert_runs_like_onnx_runtime(text, folder, densities):
    """Compare shapes and elements of each run."""
    path = save(folder, parse(text))
    peer = onnxruntime.InferenceSession(path)
    lengths = set()
    with PoisonedSession(build(path, folder), guard=True) as session:
        assert set(session.backends()) == {"arenite"}
        for density in densities:
            feeds = feeds_of(peer, density)
            found, expected = session.run(feeds), peer.run(None, feeds)
            for one, other in zip(found.values(), expected, strict=True):
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                if other.dtype.kind == "f":
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
                else:
                    np.testing.assert_array_equal(one, other)
            lengths.add(tuple(each.size for each in expected))
    return lengths


@pytest.mark.parametrize("name", CASES)
def test_as_much_is_made_as_onnx_runtime_makes(name, tmp_path):
    densities = (0.5, 0, 1, 0.1, 0.9, 0, 0.4)
    assert_runs_like_onnx_runtime(CASES[name], tmp_path, densities)


@pytest.mark.parametrize("text", DETECTORS)
def test_detectors_with_their_own_post_processing(text, tmp_path):
    densities = [*np.linspace(0, 1, 100), *GENERATOR.random(100)]
    assert len(assert_runs_like_onnx_runtime(text, tmp_path, densities)) > 5


COUNTED_AGAIN = """(float[40] x) => (float[p,2] y)
<float low = {0.0}, float high = {0.5}, int64[1] zero = {0}, int64 none = {0},
 int64[1] minus = {-1}>
{ g = Greater(x, low) n = NonZero(g) i = Squeeze(n, zero) a = Gather(x, i) h = Greater(a, high)
  m = NonZero(h) j = Squeeze(m, zero) b = Gather(a, j) s = Shape(b)
  t = ReduceProd<keepdims=0>(s) e = Equal(t, none)
  k = If(e) <then_branch = nothing () => (float[0] z) { z = ConstantOfShape(zero) },
             else_branch = some () => (float[q] z) { z = Sqrt(b) }>
  c = Concat<axis=0>(k, k) l = Shape(k) r = Concat<axis=0>(l, minus) y = Reshape(c, r) }"""


def test_a_branch_for_nothing_is_known_by_what_was_counted_last(tmp_path):
    lengths = assert_runs_like_onnx_runtime(COUNTED_AGAIN, tmp_path, (0.9, 1, 0.6, 0.3))
    assert len(lengths) > 2


def test_branches_that_differ_where_nothing_is_found_are_refused(tmp_path):
    text = SSD.replace("ConstantOfShape<value = int64[1] {0}>(zero)", "Identity(one)")
    text = text.replace("int64[0] z", "int64[1] z")
    with pytest.raises(arenite.AreniteError, match=r"If.*not empty in both where.* is 0"):
        build(save(tmp_path, parse(text)), tmp_path)


def test_what_is_found_at_each_size_of_a_range(tmp_path):
    path = save(tmp_path, parse(YOLO.replace("40", "n")))
    arenite.build(path, tmp_path / "ranged.arena", dims={"n": Dimension("n", 1, 40)})
    peer = onnxruntime.InferenceSession(path)
    with Session(tmp_path / "ranged.arena", guard=True) as session:
        for num_boxes in (40, 3, 1, 17, 40, 2):
            low = GENERATOR.uniform(0, 1, (2, num_boxes, 2))
            feeds = {
                "boxes": np.concatenate([low, low + 0.3], -1).astype(np.float32),
                "scores": GENERATOR.uniform(0, 1, (2, 3, num_boxes)).astype(np.float32),
            }
            (expected,) = peer.run(None, feeds)
            np.testing.assert_array_equal(session.run(feeds)["y"], expected)
            assert session.sizes == {"n": num_boxes, "kept": len(expected)}


HOSTILE = {
    "no step": ({"counted_by": 99}, "counted by no step"),
    "a step that does not count": ({"counted_by": 1}, "not the number of rows"),
    "a range that begins above 0": ({"low": 1}, "not the number of rows"),
    "a step": ({"step": 2}, "not the number of rows"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_counts_are_refused(name, tmp_path):
    fields, reason = HOSTILE[name]
    program = apart(save(tmp_path, parse(YOLO)))
    wrong = edited(program, lambda root: root["dimensions"][0].update(fields))
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces([wrong], "hostile")


def test_a_count_without_any_axes_is_refused(tmp_path):
    def edit(root):
        del root["axes"], root["numbers"]

    with pytest.raises(ProgramError, match="not the number of rows"):
        Session.of_pieces([edited(apart(save(tmp_path, parse(YOLO))), edit)], "hostile")


def test_what_nobody_can_run_is_refused_with_the_operator(tmp_path):
    text = "(float[9] x) => (y) {z = NonZero(x) f = Cast<to=1>(z) y = Det(f)}"
    with pytest.raises(arenite.AreniteError, match="Det"):
        build(save(tmp_path, parse(text)), tmp_path)


def test_a_step_that_comes_before_the_count_that_it_depends_on_is_refused():
    found = Dimension("found", 0, 9, counted_by="found")
    move = Move(shape=(1,), input_start=found.size, input_strides=(1,), output_strides=(1,))
    with pytest.raises(UnwritableProgramError, match="'found', which a later step counts"):
        Sizing((found,)).add_step(0, "early", Copy(moves=(move,)))

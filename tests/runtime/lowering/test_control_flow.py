"""If, Loop and Scan on values of the run: ONNX Runtime's steps among ours."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from arenite.pipeline.base.reading import Reading
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.errors import MissingDataError
from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

IMAGES = """
    (float[1,3,8,8] x, float[1] level) => (float[1,4,8,8] y, float[1,4] m)
    <float[4,3,3,3] w, float[4,3,1,1] v, float[4,4,1,1] u, float[1] half = {0.5}> {
        bright = Greater(level, half)
        r = Relu(x)
        d = If (bright) <
            then_branch = t () => (a) { b = Conv<pads=[1,1,1,1]>(r, w) a = Sigmoid(b) },
            else_branch = e () => (a) { a = Conv(r, v) }>
        y = Conv(d, u)
        m = ReduceMean<axes=[2,3], keepdims=0>(y)
    }
"""
NESTED = """
    (float[8] x, bool c, bool d) => (float[8] y) <float[8] w> {
        far = Abs(x)
        z = If (c) <
            then_branch = t () => (a) {
                near = Neg(far)
                a = If (d) <
                    then_branch = inner_t () => (b) { p = Add(near, w) b = Abs(p) },
                    else_branch = inner_e () => (b) { b = Sub(far, near) }>
            },
            else_branch = e () => (a) { unread = Exp(w) a = Identity(far) }>
        y = Neg(z)
    }
"""
LOOP = """
    (float[8] x, int64 count, bool go) => (float[8] y) <float[8] w> {
        h = Abs(x)
        last = Loop (count, go, x) <
            body = b (int64 i, bool again, float[8] state) => (next_again, next) {
                hundred = Constant<value = float {100.0}> ()
                next = Add(state, h)
                sum = ReduceSum<keepdims=0>(next)
                next_again = Less(sum, hundred)
            }>
        y = Mul(last, w)
    }
"""
SCAN = """
    (float[4] start, float[5, 4] rows) => (float[4] last, float[4, 5] y) {
        begin = Neg(start)
        last, sums = Scan <num_scan_inputs = 1, scan_output_axes = [1],
            body = b (float[4] state, float[4] row) => (next, out) {
                next = Add(state, row)
                out = Mul(next, begin)
            }> (begin, rows)
        y = Abs(sums)
    }
"""


def compare(folder: Path, text: str, *feeds: dict[str, Any]) -> tuple[str, ...]:
    """Run a model beside ONNX Runtime on each of these; return whose kernels ran its steps."""
    path = save(folder, with_random_weights(parse(text)))
    with PoisonedSession(build(path, folder), guard=True) as session:
        for seed, given in enumerate(feeds):
            values = random_feeds(session, seed)
            values.update(
                (name, np.asarray(value, values[name].dtype)) for name, value in given.items()
            )
            assert_same(session.run(values), reference_outputs(path, values), 1e-5)
        return tuple(session.backends())


def test_either_branch_of_a_condition_of_the_run_is_taken(tmp_path: Path) -> None:
    backends = compare(tmp_path, IMAGES, {"level": [0.2]}, {"level": [0.7]}, {"level": [0.1]})
    assert backends.count("onnxruntime") == 1


def test_branches_in_branches_read_what_lies_outside(tmp_path: Path) -> None:
    feeds = [{"c": c, "d": d} for c in (True, False) for d in (True, False)]
    assert compare(tmp_path, NESTED, *feeds).count("onnxruntime") == 1


def test_a_loop_runs_as_often_as_the_run_says(tmp_path: Path) -> None:
    """Until its count is reached, until its condition fails, or not at all."""
    feeds = [{"count": 3, "go": True}, {"count": 1000, "go": True}]
    feeds += [{"count": 0, "go": True}, {"count": 3, "go": False}]
    assert compare(tmp_path, LOOP, *feeds).count("onnxruntime") == 1


def test_a_scan_stacks_its_rows_along_another_axis(tmp_path: Path) -> None:
    assert compare(tmp_path, SCAN, {}, {}).count("onnxruntime") == 1


def test_the_user_is_told_what_lies_outside_the_arena(tmp_path: Path) -> None:
    program = compile_model(save(tmp_path, parse(NESTED))).program
    told = next(note for note in program.notes if note.startswith("If"))
    assert "the branch it takes needs at most 64 B" in told
    assert "where ONNX Runtime runs it, that lies outside the arena" in told
    assert any("1 If (no kernel for this operator)" in note for note in program.notes)


def test_steps_of_the_plan_do_not_hold_what_the_branch_makes(tmp_path: Path) -> None:
    """ONNX Runtime would leave it unused."""
    problem = compile_model(save(tmp_path, parse(NESTED))).source.problem
    assert not any(record.name.endswith("/scratch") for record in problem.records)


def stored_beside(folder: Path, *, missing: bool) -> Path:
    """A model whose branches have weights in another file."""
    model = parse(
        """(float[8] x, bool c) => (float[8] y) {
            y = If (c) <
                then_branch = t () => (a) { a = Add(x, w) },
                else_branch = e () => (a) { a = Neg(x) }>
        }"""
    )
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[8])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    model.graph.node[0].attribute[0].g.initializer.append(tensor)
    if not missing:
        (folder / "w.bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    return save(folder, model)


def test_weights_of_a_branch_may_lie_in_another_file(tmp_path: Path) -> None:
    path = stored_beside(tmp_path, missing=False)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    program = build(path, elsewhere)
    with PoisonedSession(program) as session:
        x = np.ones(8, np.float32)
        outputs = session.run({"x": x, "c": np.asarray(True)})
        assert np.array_equal(outputs["y"], x + np.arange(8))


def test_a_missing_file_of_a_branch_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match=r"'w': .*'w\.bin'"):
        compile_model(stored_beside(tmp_path, missing=True))


def test_control_flow_behind_a_free_dimension_has_the_shapes_that_are_bound(
    tmp_path: Path,
) -> None:
    text = LOOP.replace("float[8] x", "float[N] x").replace("float[8] state", "float[N] state")
    text = text.replace("float[8] y", "float[N] y").replace("float[8] w", "float[1] w")
    path = save(tmp_path, with_random_weights(parse(text)))
    with PoisonedSession(build(path, tmp_path, reading=Reading(dims={"N": 5}))) as session:
        feeds = {"x": np.ones(5, np.float32), "count": np.asarray(4), "go": np.asarray(True)}
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-5)


def test_what_is_known_inside_a_branch_is_still_asked_of_the_run(tmp_path: Path) -> None:
    """Our importer folds the shape of an outer tensor; ONNX Runtime needs the tensor."""
    text = """
        (float[2, 3] x, bool c) => (int64[2] y) {
            h = Abs(x)
            y = If (c) <
                then_branch = t () => (a) { a = Shape(h) },
                else_branch = e () => (a) { s = Shape(x) a = Neg(s) }>
        }
    """
    compare(tmp_path, text, {"c": True}, {"c": False})


COUNTED = """
    (float[7, 3] x, float[3] start) => (float[N, 3] y)
    <int64 most = {9}, bool go = {1}, int32 zero = {0}, int64[1] three = {3}, float[1,3] w> {
        counted, last, rows = Loop (most, go, zero, start) <
            body = b (int64 i, bool again, int32 c, float[3] s) => (more, c1, s1, o) {
                one = Constant<value = int32 {1}> ()
                seven = Constant<value = float {7.0}> ()
                c1 = Add(c, one)
                row = Gather<axis=0>(x, c)
                s1 = Add(s, row)
                o = Identity(s1)
                f = Cast<to=1>(c1)
                more = Less(f, seven)
            }>
        shape = Shape(rows)
        axis = Constant<value = int64[1] {0}> ()
        count = Gather<axis=0>(shape, axis)
        both = Concat<axis=0>(count, three)
        spread = Expand(w, both)
        y = Add(rows, spread)
    }
"""
DEAD = COUNTED.replace("f = Cast", "dead = Mul(s, s) f = Cast")
FOR_EVER = COUNTED.replace("most = {9}", "most = {2}")


@pytest.mark.parametrize(
    ("text", "times"), [(COUNTED, 7), (DEAD, 7), (FOR_EVER, 2)], ids=["cond", "dead", "most"]
)
def test_a_loop_that_counts_is_counted_before_the_run(
    text: str, times: int, tmp_path: Path
) -> None:
    path = save(tmp_path, with_random_weights(parse(text)))
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        made = session.run(feeds)
        assert made["y"].shape == (times, 3)
        assert_same(made, reference_outputs(path, feeds), 1e-6)


def test_a_loop_beside_results_of_16_bits_is_lowered(tmp_path: Path) -> None:
    text = """
        (float[8] x, bool go) => (float[8] y) <int64 most = {3}> {
            half = Cast<to=10>(x)
            wide = Add(half, half)
            last = Loop (most, go, wide) <
                body = b (int64 i, bool again, float16[8] s) => (again1, s1) {
                    again1 = Identity(again)
                    s1 = Add(s, wide)
                }>
            y = Cast<to=1>(last)
        }
    """
    path = save(tmp_path, parse(text))
    with PoisonedSession(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        assert_same(session.run(feeds), reference_outputs(path, feeds), 1e-3)

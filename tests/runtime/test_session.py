"""What a session promises its caller."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.placement.verification import OverlapError
from arenite.runtime import (
    IndexRangeError,
    InputNameError,
    InputShapeError,
    InputTypeError,
    ProgramError,
    Session,
    SessionClosedError,
)
from arenite.runtime.program import program_pieces
from arenite.strategies import find
from support.edited_programs import edited, read_unwritten
from support.running import PoisonedSession, assert_same, build, random_feeds, reference_outputs
from support.tiny_onnx import parse, save, with_random_weights

CLASSIFIER = """(float[1,3,16,16] x) => (y) <float[8,3,3,3] w, float[8,1,3,3] d, float[128,5] f>
{ c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w) r = Relu(c)
  e = Conv<group=8, pads=[1,1,1,1]>(r, d) a = Add(e, r)
  p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a) q = Flatten(p) l = Gemm<alpha=0.01>(q, f)
  y = Softmax<axis=-1>(l) }"""


@pytest.fixture
def model(tmp_path):
    """A small classifier of images."""
    return save(tmp_path, with_random_weights(parse(CLASSIFIER)))


@pytest.fixture
def program(model, tmp_path):
    """Its program file."""
    return build(model, tmp_path)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 9, 17])
def test_images_are_fed_channels_last_however_many_they_have(channels, tmp_path):
    text = f"(float[1,{channels},5,7] x) => (y) <float[2,{channels},3,3] w> {{ y = Conv(x, w) }}"
    path = save(tmp_path, with_random_weights(parse(text)))
    image = np.arange(channels * 5 * 7, dtype=np.float32).reshape(1, channels, 5, 7)
    with Session(build(path, tmp_path)) as session:
        (port,) = session.inputs
        session._native.lend(0, image)  # what run copies, before steps overwrite it
        assert np.array_equal(port.view, image)


def test_inputs_and_outputs_are_those_of_the_model(program):
    with Session(program) as session:
        (image,), (scores,) = session.inputs, session.outputs
        assert (image.name, image.shape, image.dtype) == ("x", (1, 3, 16, 16), np.float32)
        assert (scores.name, scores.shape, scores.dtype) == ("y", (1, 5), np.float32)


def test_views_feed_and_read_without_a_copy(program):
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)["y"]
        session.inputs[0].view[...] = feeds["x"]
        session.invoke()
        np.testing.assert_array_equal(session.outputs[0].view, expected)
        (_, size, _, _, _, address), *others = session._native.memories()  # shown to nobody else
        assert (size, others) == (session.arena_bytes, [])
        for port in (*session.inputs, *session.outputs):
            inside = port.view.__array_interface__["data"][0] - address
            assert 0 <= inside < session.arena_bytes
        # The caller's channels come first, the stored ones last.
        assert session.inputs[0].view.strides[1] == 4


def test_outputs_are_copies_unless_views_are_asked_for(program):
    with Session(program) as session:
        first, second = random_feeds(session, 1), random_feeds(session, 2)
        kept = session.run(first)["y"]
        seen = session.run(first, copy=False)["y"]
        np.testing.assert_array_equal(kept, seen)
        session.run(second)
        assert not np.array_equal(kept, seen)


def address(array):
    return array.__array_interface__["data"][0]


def test_a_loop_gets_its_results_where_those_before_the_last_lay(program):
    with Session(program) as session:
        feeds = random_feeds(session)
        places = []
        for _ in range(6):
            outputs = session.run(feeds)
            places.append(address(outputs["y"]))
        assert len(set(places)) == 2
        assert places[2:] == places[:-2]
        assert outputs["y"].flags.owndata


HOLDERS = {
    "the array": lambda array: array,
    "a view": lambda array: array[..., :1],
    "a view of a view": lambda array: array.reshape(-1)[1:],
    "a buffer": lambda array: memoryview(array)[:1],
    "an array over its buffer": lambda array: np.frombuffer(array, np.uint8),
    "a closure": lambda array: lambda: array,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_results_that_something_refers_to_are_never_written_again(holder, program):
    with Session(program) as session:
        one, other = random_feeds(session, 1), random_feeds(session, 2)
        held = []
        for _ in range(4):
            array = session.run(one)["y"]
            held.append((HOLDERS[holder](array), address(array), array.copy()))
            del array
        for _ in range(4):
            found = session.run(other)["y"]
            assert address(found) not in {place for _, place, _ in held}
        for each, _, expected in held:
            seen = each() if callable(each) else np.asarray(each)
            whole = HOLDERS[holder](expected)
            whole = whole() if callable(whole) else np.asarray(whole)
            np.testing.assert_array_equal(seen, whole)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # from NumPy 2.5 on
def test_a_result_that_its_caller_reshaped_is_not_given_out_again(program):
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds, copy=False)["y"].copy()
        for edit in (
            lambda array: setattr(array, "shape", (-1,)),
            lambda array: array.setflags(write=False),
        ):
            for _ in range(3):
                edit(session.run(feeds)["y"])
            found = session.run(feeds)["y"]
            assert found.flags.writeable
            assert found.shape == expected.shape
            np.testing.assert_array_equal(found, expected)


def test_results_outlive_their_session(program):
    with Session(program) as session:
        kept = session.run(random_feeds(session))["y"]
        expected = kept.copy()
    np.testing.assert_array_equal(kept, expected)


def test_an_array_in_any_memory_order_is_fed(program):
    with Session(program) as session:
        feeds = random_feeds(session)
        expected = session.run(feeds)["y"]
        turned = np.asfortranarray(feeds["x"])
        np.testing.assert_array_equal(session.run({"x": turned})["y"], expected)


def test_a_missing_input_is_named(program):
    with Session(program) as session, pytest.raises(InputNameError, match="'x' is missing"):
        session.run({})


def test_an_unknown_input_is_named(program):
    with Session(program) as session, pytest.raises(InputNameError, match="'z' is not an input"):
        session.run(random_feeds(session) | {"z": np.zeros(1, np.float32)})


def test_another_shape_is_refused(program):
    with Session(program) as session, pytest.raises(InputShapeError, match="1x16x16x3"):
        session.run({"x": np.zeros((1, 16, 16, 3), np.float32)})


def test_another_type_is_refused(program):
    with Session(program) as session, pytest.raises(InputTypeError, match="float64"):
        session.run({"x": np.zeros((1, 3, 16, 16))})


@pytest.mark.parametrize(
    "content", [None, b"", b"not a program at all, but long enough to be one"]
)
def test_what_is_no_program_is_refused(tmp_path, content):
    path = tmp_path / "model.arena"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProgramError, match=r"model\.arena"):
        Session(path)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ProgramError, match="not a regular file"):
        Session(tmp_path)


@pytest.mark.parametrize("poison", [-1, 256, True])
def test_poison_is_a_byte(program, poison):
    with pytest.raises(ValueError, match="not a byte"):
        Session(program, poison=poison)


@pytest.mark.parametrize("threads", [257, 10**9, 2**40])
def test_more_threads_than_any_machine_has_are_refused(program, threads):
    with pytest.raises(ValueError, match="give 1 to 256"):
        Session(program, threads=threads)


def test_no_threads_cannot_compute(program):
    with pytest.raises(ValueError, match="give 1 to 256"):
        Session(program, threads=0)


def test_two_threads_give_what_one_gives(program):
    with Session(program) as one, Session(program, threads=2) as two:
        feeds = random_feeds(one)
        np.testing.assert_allclose(one.run(feeds)["y"], two.run(feeds)["y"], rtol=1e-6)


def test_sessions_of_one_file_run_side_by_side(program):
    sessions = [Session(program) for _ in range(4)]
    feeds = [random_feeds(sessions[0], seed) for seed in range(4)]
    expected = [sessions[0].run(each)["y"] for each in feeds]
    found = [[] for _ in sessions]

    def work(index):
        for _ in range(50):
            found[index].append(sessions[index].run(feeds[index])["y"])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, results in enumerate(found):
        assert all(np.array_equal(result, expected[index]) for result in results)


def test_a_profile_names_every_step(program):
    with Session(program) as session:
        session.run(random_feeds(session))
        steps = session.profile()
        assert len(steps) == len(session.backends())
        assert {step.backend for step in steps} == {"arenite"}
        assert all(step.nanoseconds > 0 and step.bytes > 0 for step in steps)


def test_a_program_that_is_not_on_disk_runs(model):
    compiled = compile_model(model)
    assembly = compiled.assemble(find("best")(compiled.source.problem))
    with Session.of_pieces(list(program_pieces(assembly)), "in memory") as session:
        assert session.run(random_feeds(session))["y"].sum() == pytest.approx(1)


def test_tensors_that_share_memory_by_plan_share_it(model, tmp_path):
    compiled = compile_model(model)
    problem = compiled.source.problem
    plan = find("best")(problem)
    assert plan.height < sum(record.size for record in problem.records)
    with Session(build(model, tmp_path)) as session:
        session.run(random_feeds(session))
        # The sum lies where one of its operands lay: nothing of that is left.
        assert session.arena_bytes == plan.height


def wrong_plan(compiled):
    """A plan with everything at the bottom of the arena."""
    plan = find("no-reuse")(compiled.source.problem)
    object.__setattr__(plan, "offsets", (0,) * len(plan.offsets))
    return plan


def test_a_wrong_plan_is_refused_when_it_is_assembled(model):
    compiled = compile_model(model)
    with pytest.raises(OverlapError):
        compiled.assemble(wrong_plan(compiled))


def test_a_wrong_plan_is_refused_when_it_is_loaded(model, monkeypatch):
    compiled = compile_model(model)
    monkeypatch.setattr("arenite.pipeline.targets.compiling.verify", lambda *_: None)
    pieces = list(program_pieces(compiled.assemble(wrong_plan(compiled))))
    with pytest.raises(ProgramError, match="shares bytes with another"):
        Session.of_pieces(pieces, "wrong")


def test_poison_shows_a_step_that_reads_what_nobody_wrote(model):
    compiled = compile_model(model)
    assembly = compiled.assemble(find("best")(compiled.source.problem))
    pieces = [edited(assembly, read_unwritten)]
    with Session.of_pieces(pieces, "wrong") as session:
        feeds = random_feeds(session)
        assert np.isfinite(session.run(feeds)["y"]).all()
    with PoisonedSession(pieces) as session, pytest.raises(AssertionError, match="dead memory"):
        session.run(feeds)


def test_poison_leaves_a_right_program_right(program):
    with Session(program) as plain, PoisonedSession(program, guard=True) as poisoned:
        feeds = random_feeds(plain)
        np.testing.assert_array_equal(plain.run(feeds)["y"], poisoned.run(feeds)["y"])


def test_a_session_needs_numpy_and_the_native_module_only(program):
    script = (
        "import sys; started = set(sys.modules)\n"
        "from arenite.runtime import Session; import numpy as np\n"
        "s = Session(sys.argv[1]); s.run({p.name: np.zeros(p.shape, p.dtype) for p in s.inputs})\n"
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - started}))"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, program], capture_output=True, text=True, check=True
    )
    found = set(process.stdout.split()) - sys.stdlib_module_names
    assert found == {"arenite", "numpy"}


def test_a_closed_session_says_so_and_closes_twice(tmp_path):
    session = Session(build(save(tmp_path, with_random_weights(parse(CLASSIFIER))), tmp_path))
    feeds = random_feeds(session)
    session.close()
    session.close()
    for use in (lambda: session.run(feeds), session.invoke, session.backends, session.reset):
        with pytest.raises(SessionClosedError, match="closed"):
            use()


GATHER = "(float[5,2] x, int64[3] i) => (float[3,2] y) { y = Gather(x, i) }"


@pytest.mark.parametrize("index", [5, -6])
def test_a_guarded_session_refuses_an_index_beyond_its_axis_and_runs_again(index, tmp_path):
    path = build(save(tmp_path, parse(GATHER)), tmp_path)
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    inside, outside = ({"x": rows, "i": np.array([0, -5, each])} for each in (4, index))
    with Session(path) as plain, Session(path, guard=True) as guarded:
        np.testing.assert_array_equal(plain.run(outside)["y"][2], rows[min(max(index, 0), 4)])
        with pytest.raises(IndexRangeError, match=f"index {index} is not in -5 to 4"):
            guarded.run(outside)
        np.testing.assert_array_equal(guarded.run(inside)["y"], rows[[0, 0, 4]])


@pytest.mark.parametrize(("axis", "index"), [(0, 5), (0, -6), (1, 2), (1, -3)])
def test_each_index_of_several_axes_stays_within_its_own(axis, index, tmp_path):
    text = "(float[5,2] x, int64[3,2] i) => (float[3] y) { y = GatherND(x, i) }"
    path = build(save(tmp_path, parse(text)), tmp_path)
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    places = np.array([[4, 1], [-5, -2], [2, 1]])
    places[2, axis] = index
    length = rows.shape[axis]
    with Session(path) as plain, Session(path, guard=True) as guarded:
        kept = places[2].clip(0, (4, 1))
        np.testing.assert_array_equal(
            plain.run({"x": rows, "i": places})["y"], [9, 0, rows[*kept]]
        )
        with pytest.raises(IndexRangeError, match=f"index {index} is not in -{length} to"):
            guarded.run({"x": rows, "i": places})


CACHE = (
    "(float[1,2,7,4] past, float[1,2,1,4] x) => (y, z) {y = Concat<axis=2>(past, x) z = Relu(y)}"
)


@pytest.mark.parametrize(
    "text",
    [
        CACHE,
        "(float[3,4] past, float[3,5] x) => (y) {y = Concat<axis=1>(past, x)}",
        "(float[3,4] past, float[3,4] x) => (y) {y = Concat<axis=1>(past, x, past)}",
        "(float[3,4] past, float[3,4] x) => (y, z) {y = Concat<axis=1>(past, x) z = Relu(past)}",
        "(float[3,4] past, float[3,4] x) => (y, v) <int64[1] s = {12}> "
        "{y = Concat<axis=1>(past, x) v = Reshape(past, s)}",
        "(float[3,4] past, float[3,4] x) => (y) <int64[2] s = {2, 6}> "
        "{v = Reshape(past, s) w = Concat<axis=0>(v, v) y = Mul(w, w)}",
    ],
)
def test_inputs_that_are_read_where_the_caller_has_them_are_the_callers(text, tmp_path):
    path = save(tmp_path, parse(text))
    with Session(build(path, tmp_path), poison=0xFF) as session:
        for _ in range(2):  # in other arrays
            feeds = random_feeds(session)
            assert_same(session.run(feeds), reference_outputs(path, feeds))
        for port in session.inputs:  # after a run they are found in the arena again
            port.view[...] = 2
        session.invoke()
        feeds = {port.name: np.full(port.shape, 2, np.float32) for port in session.inputs}
        found = {port.name: port.view.copy() for port in session.outputs}
        assert_same(found, reference_outputs(path, feeds))


def test_an_input_that_is_joined_is_not_copied_first(tmp_path):
    with Session(build(save(tmp_path, parse(CACHE)), tmp_path)) as session:
        session.run(random_feeds(session))
        past = next(port for port in session.inputs if port.name == "past")
        past.view[...] = 3
        session._native.lend(0, np.full(past.shape, 4, np.float32))
        assert np.all(past.view == 3)
        session._native.settle()


def test_an_array_in_the_arena_is_copied_before_steps_write_over_it(tmp_path):
    text = "(float[1,2,1,4] x, float[1,2,4,4] past) => (y) <int64[1] a = {2}, int64[1] s = {1}, "
    text += "int64[1] e = {5}> {j = Concat<axis=2>(past, x) y = Slice(j, s, e, a)}"
    with Session(build(save(tmp_path, parse(text)), tmp_path)) as session:
        feeds = random_feeds(session)
        wanted = feeds
        for _ in range(3):
            made = session.run(feeds, copy=False)["y"]
            joined = np.concatenate([wanted["past"], wanted["x"]], axis=2)[:, :, 1:]
            assert np.array_equal(made, joined)
            feeds = {"x": feeds["x"], "past": made}
            wanted = {"x": feeds["x"], "past": joined}


def test_outputs_larger_than_caches_are_copied_whole(tmp_path):
    path = save(tmp_path, parse("(float[1,1300003] x) => (y) {y = Relu(x)}"))
    with Session(build(path, tmp_path)) as session:
        feeds = random_feeds(session)
        held = [session.run(feeds)["y"] for _ in range(3)]  # at several addresses
        for each in held:
            assert np.array_equal(each, np.maximum(feeds["x"], 0))

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from arenite.planner.errors import MissingDependencyError, UnsupportedModelError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem
from arenite.planner.placement.verification import InvalidPlanError
from arenite.runtime.targets.onnxruntime import (
    InputMismatchError,
    PlannedSession,
    RunFailedError,
    RunMemory,
    StockSessionWarning,
    UnknownOutputError,
    stock_memory,
    stock_options,
    stock_session,
)
from arenite.runtime.targets.onnxruntime import library as library_module
from arenite.runtime.targets.onnxruntime import session as session_module
from arenite.strategies import find
from support import tiny_onnx
from support.shared_material import shared

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
CHAIN = """(float[N,4] x) => (y) <float[4,64] wide, float[64,4] narrow> {
    a = MatMul(x, wide)
    b = Cos(a)
    c = MatMul(b, narrow)
    d = Cos(c)
    e = MatMul(d, wide)
    y = Cos(e)
}"""


def chain() -> bytes:
    return tiny_onnx.with_random_weights(tiny_onnx.parse(CHAIN), 1).SerializeToString()


def model(text: str, **options: Any) -> bytes:
    return tiny_onnx.parse(text, **options).SerializeToString()


def planned(source: Path | bytes, **options: Any) -> PlannedSession:
    return PlannedSession(source, strategy=find("best"), **options)


def stock(source: Path | bytes) -> Any:
    return stock_session(source, stock_options())


def rows(count: int, seed: int = 0) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)}


def same(ours: list[Any], theirs: list[Any]) -> bool:
    return [(one.dtype, one.shape, one.tobytes()) for one in ours] == [
        (one.dtype, one.shape, one.tobytes()) for one in theirs
    ]


def assert_runs_as_stock(source: Path | bytes, feeds: Iterator[dict[str, Any]]) -> PlannedSession:
    ours, theirs = planned(source), stock(source)
    for each in feeds:
        assert same(ours.run(None, each), theirs.run(None, each))
    assert ours.num_outside == 0
    return ours


def test_a_small_model_runs_in_our_arena_as_it_does_in_stock():
    session = assert_runs_as_stock(chain(), (rows(8, seed) for seed in range(4)))
    assert session.problem is not None
    assert session.last_run == RunMemory(len(session.problem.records), 0, 0)
    assert session.arena_bytes == session.problem.lower_bound > 0


@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet"])
def test_a_network_of_the_onnx_package_runs_in_our_arena_as_it_does_in_stock(name: str):
    random = np.random.default_rng(0)
    (value,) = stock(LIGHT / f"{name}.onnx").get_inputs()
    session = assert_runs_as_stock(
        LIGHT / f"{name}.onnx",
        ({value.name: random.standard_normal(value.shape, np.float32)} for _ in range(3)),
    )
    assert session.plan is not None
    assert session.plan.optimal


@pytest.mark.parametrize(
    ("name", "feeds"),
    [
        ("openseeface_lm_model0_opt", {"input": (1, 3, 224, 224)}),
        ("ultraface_rfb320", {"input": (1, 3, 240, 320)}),
        ("silero_vad_16k_op15", {"input": (1, 576), "state": (2, 1, 128)}),
    ],
)
def test_a_real_model_runs_in_our_arena_as_it_does_in_stock(
    name: str, feeds: dict[str, tuple[int, ...]]
):
    random = np.random.default_rng(0)
    rate = {"sr": np.array(16_000, np.int64)} if name.startswith("silero") else {}
    assert_runs_as_stock(
        shared(f"models/onnx/{name}.onnx"),
        (
            rate | {key: random.standard_normal(shape, np.float32) for key, shape in feeds.items()}
            for _ in range(3)
        ),
    )


def test_the_first_run_is_recorded_and_the_second_served():
    session = planned(chain())
    assert (session.plan, session.last_run, session.arena_bytes) == (None, None, None)
    session.run(None, rows(8))
    assert session.plan is not None
    assert session.last_run is None
    session.run(None, rows(8))
    assert session.last_run is not None
    assert session.last_run.inside > 0


def test_larger_shapes_fall_back_to_the_heap_and_are_counted():
    session, source = planned(chain()), chain()
    for count, inside in ((8, True), (8, True), (64, False), (8, True)):
        assert same(session.run(None, rows(count)), stock(source).run(None, rows(count)))
        if session.last_run is not None:
            assert (session.last_run.outside == 0) is inside
    assert session.num_outside > 0


def test_smaller_shapes_are_served_from_the_arena():
    session = planned(chain())
    session.run(None, rows(8))
    assert same(session.run(None, rows(3)), stock(chain()).run(None, rows(3)))
    assert session.num_outside == 0


def test_even_a_wrong_plan_gives_right_outputs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session_module, "verify", lambda _problem, _plan: None)

    def overlapping(problem: Problem) -> Plan:
        return Plan.of(problem, (0,) * len(problem.records), "wrong")

    session = PlannedSession(chain(), strategy=overlapping)
    session.run(None, rows(8))
    assert same(session.run(None, rows(8)), stock(chain()).run(None, rows(8)))
    assert session.num_outside > 0


def test_outputs_belong_to_the_caller():
    session = planned(chain())
    session.run(None, rows(8))
    (first,) = session.run(None, rows(8, seed=1))
    kept = first.copy()
    session.run(None, rows(8, seed=2))
    assert np.array_equal(first, kept)


def test_it_takes_a_plan_made_before():
    first = planned(chain())
    first.run(None, rows(8))
    session = PlannedSession(chain(), first.plan)
    session.run(None, rows(8))
    session.run(None, rows(8))
    assert session.plan == first.plan
    assert session.num_outside == 0


def test_a_plan_for_another_shape_is_refused():
    first = planned(chain())
    first.run(None, rows(8))
    with pytest.raises(InvalidPlanError):
        PlannedSession(chain(), first.plan).run(None, rows(64))


def test_an_overlapping_plan_is_refused():
    first = planned(chain())
    first.run(None, rows(8))
    assert first.plan is not None
    wrong = replace(first.plan, offsets=(0,) * len(first.plan.offsets))
    with pytest.raises(InvalidPlanError):
        PlannedSession(chain(), wrong).run(None, rows(8))


@pytest.mark.parametrize("wrong", [{}, {"plan": object(), "strategy": find("best")}])
def test_it_needs_either_a_plan_or_a_strategy(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match="either a plan or a strategy"):
        PlannedSession(chain(), **wrong)


def test_inputs_and_outputs_are_described_as_stock_does():
    source = model(
        "(float[N,4] x, int64[] k, bool[2,M,3] b) => (float[N,?] y, int64[] j, bool[2,M,3] c)"
        "{ y = Relu(x) j = Identity(k) c = Not(b) }"
    )
    ours, theirs = planned(source), stock(source)

    def described(values: Any) -> list[tuple[Any, ...]]:
        return [(value.name, value.type, value.shape) for value in values]

    assert described(ours.get_inputs()) == described(theirs.get_inputs())
    assert described(ours.get_outputs()) == described(theirs.get_outputs())


def test_the_outputs_asked_for_come_in_the_order_asked():
    session = planned(model("(float[2] x) => (float[2] a, float[2] b) { a = Neg(x) b = Abs(x) }"))
    x = np.array([1, -2], np.float32)
    for _ in range(2):
        b, a = session.run(["b", "a"], {"x": x})
        assert np.array_equal(a, -x)
        assert np.array_equal(b, np.abs(x))
    with pytest.raises(UnknownOutputError, match=r"'c'; known: 'a', 'b'"):
        session.run(["c"], {"x": x})


@pytest.mark.parametrize(
    ("feeds", "said"),
    [
        ({}, "'x': missing"),
        ({"x": np.zeros((2, 4), np.float32), "z": np.zeros(1)}, "'z': unknown; known: x"),
        ({"x": np.zeros((2, 4))}, "is float64, expected float32"),
        ({"x": np.zeros((2, 5), np.float32)}, r"has shape \(2, 5\), expected \('N', 4\)"),
        ({"x": np.zeros(4, np.float32)}, r"has shape \(4,\), expected \('N', 4\)"),
        ({"x": [[1.0] * 4]}, "is a list, expected a numpy array"),
    ],
)
def test_what_does_not_fit_an_input_is_refused(feeds: dict[str, Any], said: str):
    with pytest.raises(InputMismatchError, match=said):
        planned(chain()).run(None, feeds)


def test_scalars_empty_and_strided_inputs_are_taken():
    source = model("(float[N] x, float k) => (float[N] y) { y = Mul(x, k) }")
    session = planned(source)
    k = np.array(3, np.float32)
    for x in (np.arange(8, dtype=np.float32)[::2], np.zeros(0, np.float32)):
        (y,) = session.run(None, {"x": x, "k": k})
        assert np.array_equal(y, x * 3)


@pytest.mark.parametrize("shape", ["2,3", "N,3", ""])
@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("float", np.float32),
        ("double", np.float64),
        ("float16", np.float16),
        ("bool", np.bool_),
        *((each, np.dtype(each)) for each in "int8 int16 int32 int64".split()),  # noqa: SIM905
        *((each, np.dtype(each)) for each in "uint8 uint16 uint32 uint64".split()),  # noqa: SIM905
    ],
)
def test_every_element_type_is_taken_and_given(element: str, dtype: Any, shape: str):
    source = model(
        f"({element}[{shape}] x) => ({element}[{shape}] y) {{ y = Identity(x) }}", opset=16
    )
    session = planned(source)
    x = np.random.default_rng(0).integers(0, 2, (2, 3) if shape else ()).astype(dtype)
    for _ in range(2):
        (y,) = session.run(None, {"x": x})
        assert (y.dtype, y.shape) == (x.dtype, x.shape)
        assert np.array_equal(x, y)


def test_an_input_of_unstated_rank_takes_any_shape():
    session = planned(model("(float x) => (float y) { y = Relu(x) }"))
    for shape in ((), (2,), (2, 3), (0, 2)):
        (y,) = session.run(None, {"x": np.ones(shape, np.float32)})
        assert y.shape == shape


def test_a_model_without_tensors_of_its_own_needs_no_arena():
    session = planned(model("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    x = np.array([1, -2], np.float32)
    for _ in range(2):
        (y,) = session.run(None, {"x": x})
        assert np.array_equal(y, np.maximum(x, 0))
    assert session.arena_bytes == 0


def test_an_output_of_another_shape_than_stated_is_still_right():
    source = model("(float[3] x) => (int64[1,3] y) { y = NonZero(x) }")
    session = planned(source)
    for x in ([1, 1, 1], [1, 0, 1], [1, 1, 1], [0, 0, 0]):
        (y,) = session.run(None, {"x": np.array(x, np.float32)})
        assert y.tolist() == [np.flatnonzero(x).tolist()]
    session = planned(source)
    for x in ([0, 0, 1], [1, 1, 1]):
        (y,) = session.run(None, {"x": np.array(x, np.float32)})
        assert y.tolist() == [np.flatnonzero(x).tolist()]


def test_a_run_that_onnx_runtime_gives_up_on_says_so(capfd: pytest.CaptureFixture[str]):
    source = model("(float[4] x, int64[1] k) => (y) { y = Gather(x, k) }")
    session = planned(source)
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(RunFailedError, match="indices element out of data bounds"):
        session.run(None, {"x": x, "k": np.array([9])})
    for index in (1, 2):
        assert session.run(None, {"x": x, "k": np.array([index])})[0] == index
    with pytest.raises(RunFailedError):
        session.run(None, {"x": x, "k": np.array([9])})
    assert session.run(None, {"x": x, "k": np.array([3])})[0] == 3
    assert capfd.readouterr() == ("", "")


def test_sessions_do_not_disturb_one_another():
    first, second = planned(chain()), planned(chain())
    for seed in range(3):
        expected = stock(chain()).run(None, rows(8, seed))
        assert same(first.run(None, rows(8, seed)), expected)
        assert same(second.run(None, rows(8, seed)), expected)
        third = planned(chain())
        third.run(None, rows(8))
        del third
        gc.collect()
    assert first.num_outside == second.num_outside == 0


def test_threads_that_share_a_session_wait_for_each_other():
    session = planned(chain(), num_threads=2)
    expected = {seed: stock(chain()).run(None, rows(8, seed)) for seed in range(4)}
    wrong: list[int] = []

    def work(seed: int) -> None:
        for _ in range(50):
            if not same(session.run(None, rows(8, seed)), expected[seed]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert session.num_outside == 0


@pytest.fixture
def fresh_library() -> Iterator[None]:
    library_module.library.cache_clear()
    yield
    library_module.library.cache_clear()


def falls_back(source: bytes, reason: str) -> PlannedSession:
    with pytest.warns(StockSessionWarning, match=reason):
        session = planned(source)
    for _ in range(2):
        assert same(session.run(None, rows(8)), stock(source).run(None, rows(8)))
    assert (session.plan, session.last_run) == (None, None)
    return session


@pytest.mark.usefixtures("fresh_library")
def test_an_unknown_version_of_the_api_falls_back_to_stock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(library_module, "_API_VERSION", 10_000)
    session = falls_back(chain(), "no C API of version 10000")
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert [value.name for value in session.get_outputs()] == ["y"]


def test_a_session_that_does_not_ask_us_falls_back_to_stock(monkeypatch: pytest.MonkeyPatch):
    call = library_module.Library.call

    def deaf(self: Any, name: str, *arguments: object) -> None:
        if name not in ("RegisterAllocator", "UnregisterAllocator"):
            call(self, name, *arguments)

    monkeypatch.setattr(library_module.Library, "call", deaf)
    falls_back(chain(), "does not use the registered allocator")


def test_inputs_that_are_not_numbers_fall_back_to_stock():
    source = model("(string[2] x) => (string[2] y) { y = Identity(x) }", opset=16)
    with pytest.warns(StockSessionWarning, match="an element type unknown to numpy"):
        session = planned(source)
    (y,) = session.run(None, {"x": np.array(["a", "b"], object)})
    assert y.tolist() == ["a", "b"]


@pytest.mark.usefixtures("fresh_library")
def test_without_onnx_runtime_the_error_names_the_extra(without):
    without("onnxruntime")
    with pytest.raises(MissingDependencyError, match=r"arenite\[onnx\]"):
        planned(chain())


def test_a_damaged_model_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"no model at all")
    for source in (path, path.read_bytes(), tmp_path / "absent.onnx"):
        for opened in (planned, stock):
            with pytest.raises(UnsupportedModelError, match="rejected by onnxruntime"):
                opened(source)
    assert capfd.readouterr() == ("", "")


def test_it_outlives_every_name_but_its_own():
    # In a process of its own: freed too early, an allocator or a buffer ends it.
    code = """
import gc
from test_session import chain, planned, rows
session = planned(chain())
for _ in range(3):
    gc.collect()
    junk = [bytearray(4096) for _ in range(1000)]
    outputs = session.run(None, rows(8))
session = None
gc.collect()
assert outputs[0].any()
"""
    paths = [str(Path(__file__).parent), *sys.path]
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {paths}\n{code}"], check=True
    )


RECURRENT = """(float[4,1,%d] x, float[1,1,%d] h) => (y, n) <
    float[1,%d,%d] w, float[1,%d,%d] r, float[%d,%d] out
> {
    s, n = GRU <hidden_size=%d> (x, w, r, , , h)
    t = Squeeze(s)
    o = MatMul(t, out)
    y = Sigmoid(o)
}"""


def recurrent(size: int) -> bytes:
    """A GRU with its state, whose outputs are no small part of what a run takes."""
    text = RECURRENT % (size, size, 3 * size, size, 3 * size, size, size, size, size)
    return tiny_onnx.with_random_weights(tiny_onnx.parse(text), 1).SerializeToString()


def spoken(size: int, seed: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).standard_normal((4, 1, size)).astype(np.float32)}


@pytest.mark.parametrize("size", [16, 33, 64, 128])
def test_with_its_outputs_inside_the_arena_is_never_larger_than_what_stock_has_in_use(size: int):
    source, start = recurrent(size), {"h": np.zeros((1, 1, size), np.float32)}
    session = planned(source, outputs_in_arena=True)
    session.run(None, spoken(size, 0) | start)
    theirs = stock_memory(source, stock_options(), spoken(size, 0) | start, num_runs=3)
    assert session.arena_bytes is not None
    assert session.arena_bytes <= theirs.in_use


def test_outputs_in_the_arena_may_be_fed_back_and_hold_until_the_next_run():
    session, theirs = planned(recurrent(33), outputs_in_arena=True), stock(recurrent(33))
    ours = expected = np.zeros((1, 1, 33), np.float32)
    for seed in range(4):
        y, ours = session.run(None, spoken(33, seed) | {"h": ours})
        stock_y, expected = theirs.run(None, spoken(33, seed) | {"h": expected})
        assert same([y, ours], [stock_y, expected])
    assert session.num_outside == 0
    assert np.shares_memory(y, session._arena)  # nothing was copied
    del session
    gc.collect()
    assert same([y, ours], [stock_y, expected])


def test_outputs_that_the_arena_has_no_place_for_are_copied():
    session = planned(chain(), outputs_in_arena=True)
    for count in (8, 64, 8):
        assert same(session.run(None, rows(count)), stock(chain()).run(None, rows(count)))
    assert session.num_outside > 0


def test_a_state_fed_back_is_right_though_the_arena_is_written_before_it_is_read():
    source = model(
        "(float[4096] x, float[4096] s) => (float[4096] n)"
        "{ a = Sin(x) b = Cos(a) c = Sin(b) d = Cos(c) n = Add(d, s) }"
    )
    session, theirs = planned(source, outputs_in_arena=True), stock(source)
    ours = expected = np.zeros(4096, np.float32)
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal(4096).astype(np.float32)
        (ours,) = session.run(None, {"x": x, "s": ours})
        (expected,) = theirs.run(None, {"x": x, "s": expected})
        assert same([ours], [expected])

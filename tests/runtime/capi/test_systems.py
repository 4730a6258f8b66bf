"""Systems by the C library, beside `System` in Python: the same bits, the same errors."""

import ctypes
import itertools
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

from arenite.pipeline.systems import plan_system
from arenite.runtime import StageOrderError, System
from support.c_library import install
from support.running import build
from support.small_systems import CONNECTED, write_ranged_system, write_system
from support.tiny_onnx import parse, save

OK, ARGUMENT, UNSUPPORTED, SIZE, ORDER = 0, 1, 5, 9, 11


class Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_size_t),
        ("shape", ctypes.POINTER(ctypes.c_size_t)), ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p), ("size", ctypes.c_size_t),
    )  # fmt: skip


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(install() / "lib" / "libarenite.so"))
    found.arenite_last_error.restype = ctypes.c_char_p
    found.arenite_session_name.restype = ctypes.c_char_p
    for name in ("session", "find"):
        getattr(found, f"arenite_system_{name}").restype = ctypes.c_void_p
    for name in ("input", "output"):
        getattr(found, f"arenite_session_{name}").restype = ctypes.POINTER(Tensor)
    for name in ("system_num_sessions", "session_num_inputs", "session_num_outputs"):
        getattr(found, f"arenite_{name}").restype = ctypes.c_size_t
    return found


class InC:
    """A system opened by the C library."""

    def __init__(self, library: ctypes.CDLL, path: Path):
        self.library = library
        model, self.system = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.arenite_model_open(str(path).encode(), ctypes.byref(model)) == OK
        status = library.arenite_system_create(model, None, ctypes.byref(self.system))
        library.arenite_model_close(model)
        assert status == OK, library.arenite_last_error()

    def __enter__(self) -> "InC":
        return self

    def __exit__(self, *_: object) -> None:
        self.library.arenite_system_destroy(self.system)

    def session(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.library.arenite_system_find(self.system, name.encode()))

    def start(self, name: str) -> int:
        return self.library.arenite_session_start(self.session(name))

    def advance(self, name: str, steps: int) -> tuple[int, bool]:
        done = ctypes.c_int(-1)
        size = ctypes.c_size_t(steps)
        status = self.library.arenite_session_advance(self.session(name), size, ctypes.byref(done))
        return status, bool(done.value)

    def feed(self, name: str, given: dict[str, np.ndarray]) -> int:
        session, statuses = self.session(name), [OK]
        for number in range(self.library.arenite_session_num_inputs(session)):
            port = self.library.arenite_session_input(session, ctypes.c_size_t(number)).contents
            data = np.ascontiguousarray(given[port.name.decode()])
            statuses.append(
                self.library.arenite_session_feed(
                    session, ctypes.c_size_t(number), ctypes.c_void_p(data.ctypes.data),
                    ctypes.c_size_t(data.nbytes),
                )
            )  # fmt: skip
        return max(statuses)

    def outputs(self, name: str) -> dict[str, np.ndarray]:
        session, found = self.session(name), {}
        for number in range(self.library.arenite_session_num_outputs(session)):
            port = self.library.arenite_session_output(session, ctypes.c_size_t(number)).contents
            data = np.empty(port.shape[: port.rank], np.float32)
            assert data.nbytes == port.size
            status = self.library.arenite_session_fetch(
                session, ctypes.c_size_t(number), ctypes.c_void_p(data.ctypes.data),
                ctypes.c_size_t(data.nbytes),
            )  # fmt: skip
            assert status == OK
            found[port.name.decode()] = data
        return found

    def run(self, name: str, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        assert self.start(name) == OK, self.error()
        assert self.feed(name, given) == OK, self.error()
        assert self.library.arenite_session_run(self.session(name)) == OK, self.error()
        return self.outputs(name)

    def skip(self, name: str) -> int:
        return self.library.arenite_session_skip(self.session(name))

    def error(self) -> str:
        return self.library.arenite_last_error().decode()


def inputs_of(system: System, name: str, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        key: generator.standard_normal(port.shape).astype(np.float32)
        for key, port in system[name].inputs.items()
    }


def built(folder: Path, schedule: str, *names: str, **options: str) -> Path:
    plan_system(write_system(folder, schedule, *names, **options)).write(folder / "system.arena")
    return folder / "system.arena"


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == list(expected)
    for key, array in expected.items():
        assert found[key].tobytes() == array.tobytes(), key


@pytest.mark.parametrize("order", [*itertools.permutations(["detector", "iris", "speech"])])
def test_in_any_order_outputs_are_those_of_python(library, tmp_path, order):
    names = '"detector", "iris", "speech"'
    path = built(
        tmp_path, f"{{ any_order = [{names}] }}", "detector", "iris", "speech", keep="iris.gaze"
    )
    with System(path) as system, InC(library, path) as in_c:
        for name in order:
            given = inputs_of(system, name)
            assert_same(in_c.run(name, given), system[name].run(given))
        kept = system["iris"].outputs["gaze"].view
        assert in_c.outputs("iris")["gaze"].tobytes() == np.ascontiguousarray(kept).tobytes()
        assert library.arenite_system_num_sessions(in_c.system) == 3
        first = ctypes.c_void_p(library.arenite_system_session(in_c.system, ctypes.c_size_t(0)))
        assert library.arenite_session_name(first) == b"detector"
        assert library.arenite_system_session(in_c.system, ctypes.c_size_t(3)) is None
        assert library.arenite_system_find(in_c.system, b"nobody") is None


def test_orders_that_would_destroy_something_are_refused_as_in_python(library, tmp_path):
    names = ("detector", "landmarks", "iris")
    path = built(
        tmp_path, '"detector", "landmarks", "iris"', *names, more=CONNECTED, keep="detector.boxes"
    )
    with System(path) as system, InC(library, path) as in_c:
        given = {name: inputs_of(system, name) for name in names}

        def refused(name: str) -> None:
            with pytest.raises(StageOrderError) as error:
                system[name].start(given[name])
            assert in_c.start(name) == ORDER
            assert in_c.error() == str(error.value)

        refused("iris")
        assert in_c.feed("detector", given["detector"]) == ORDER
        assert in_c.error() == "no run of 'detector' has begun; call arenite_session_start"
        assert library.arenite_session_run(in_c.session("detector")) == ORDER
        assert_same(
            in_c.run("detector", given["detector"]), system["detector"].run(given["detector"])
        )
        refused("iris")  # which 'landmarks' has not read
        system["landmarks"].start(given["landmarks"])
        assert in_c.start("landmarks") == OK
        assert in_c.feed("landmarks", given["landmarks"]) == OK
        assert in_c.advance("landmarks", 1) == (OK, system["landmarks"].advance(1))
        refused("detector")
        system["landmarks"].skip()
        assert in_c.skip("landmarks") == OK
        assert in_c.advance("landmarks", 1)[0] == ORDER
        assert_same(in_c.run("iris", {}), system["iris"].run())
        refused("iris")
        system.finish()
        assert library.arenite_system_finish(in_c.system) == OK
        refused("landmarks")


def test_models_at_once_run_in_slices_and_on_threads(library, tmp_path):
    path = built(tmp_path, '{ at_once = ["speech", "detector"] }', "speech", "detector")
    with System(path) as system, InC(library, path) as in_c:
        given = {name: inputs_of(system, name) for name in system}
        expected = {name: system[name].run(given[name]) for name in system}
        assert in_c.start("speech") == OK
        assert in_c.feed("speech", given["speech"]) == OK
        is_done = False
        while not is_done:
            assert_same(in_c.run("detector", given["detector"]), expected["detector"])
            status, is_done = in_c.advance("speech", 1)
            assert status == OK
        assert_same(in_c.outputs("speech"), expected["speech"])
        found: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in given}

        def runs(name: str) -> None:
            for _ in range(20):
                found[name].append(in_c.run(name, given[name]))

        threads = [threading.Thread(target=runs, args=(name,)) for name in given]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name, arrays in found.items():
            assert len(arrays) == 20
            for each in arrays:
                assert_same(each, expected[name])


@pytest.mark.parametrize("kind", ["any_order", "at_once"])
def test_models_have_sizes_of_their_own(library, tmp_path, kind):
    path = tmp_path / "system.arena"
    plan_system(write_ranged_system(tmp_path, kind)).write(path)
    sizes = (ctypes.c_size_t * 2)(7, 44)
    generator = np.random.default_rng(0)
    with System(path) as system, InC(library, path) as in_c:
        for name, length in (("short", 7), ("long", 44)):
            session = in_c.session(name)
            assert library.arenite_session_resize(session, sizes, ctypes.c_size_t(2)) == OK
            given = {"x": generator.standard_normal((1, 4, length, 6)).astype(np.float32)}
            assert_same(in_c.run(name, given), system[name].run(given))
        assert in_c.outputs("short")["y"].shape == (1, 8, 7, 6)
        assert library.arenite_session_resize(session, sizes, ctypes.c_size_t(1)) == ARGUMENT
        sizes[0] = 41
        assert library.arenite_session_resize(session, sizes, ctypes.c_size_t(2)) == SIZE


def test_each_kind_of_file_is_opened_in_its_way(library, tmp_path):
    system = built(tmp_path, '"detector"', "detector")
    single = build(save(tmp_path, parse("(float[2] x) => (y) {y = Neg(x)}")), tmp_path)
    for path, how, other in (
        (system, "arenite_session_create", "arenite_system_create"),
        (single, "arenite_system_create", "arenite_session_create"),
    ):
        model, made = ctypes.c_void_p(), ctypes.c_void_p(1)
        assert library.arenite_model_open(str(path).encode(), ctypes.byref(model)) == OK
        assert getattr(library, how)(model, None, ctypes.byref(made)) == UNSUPPORTED
        assert made.value is None
        assert f"open it by {other}" in library.arenite_last_error().decode()
        library.arenite_model_close(model)
    nothing = ctypes.c_void_p(None)
    assert library.arenite_system_create(nothing, None, ctypes.byref(made)) == ARGUMENT
    assert library.arenite_system_finish(nothing) == ARGUMENT
    assert library.arenite_session_start(nothing) == ARGUMENT
    assert library.arenite_session_skip(nothing) == ARGUMENT
    assert library.arenite_system_num_sessions(nothing) == 0
    library.arenite_system_destroy(nothing)


def test_arenite_run_runs_all_models_in_turn(tmp_path):
    names = ("detector", "landmarks", "iris")
    path = built(tmp_path, '"detector", "landmarks", "iris"', *names, more=CONNECTED)
    with System(path) as system:
        inputs = {name: inputs_of(system, name) for name in names}
        outputs = {name: system[name].run(inputs[name]) for name in names}
    command = [str(install() / "bin/arenite-run"), str(path), "--runs", "2"]
    for number, array in enumerate(each for some in inputs.values() for each in some.values()):
        array.tofile(tmp_path / f"in{number}")
        command += ["--input", str(tmp_path / f"in{number}")]
    command += ["--output", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = [each.ravel() for some in outputs.values() for each in some.values()]
    found = np.fromfile(tmp_path / "out", np.float32)
    assert found.tobytes() == np.concatenate(expected).tobytes()
    assert "input    landmarks.scale: float32 1x4x1x1" in done.stdout
    assert "output   iris.gaze: float32" in done.stdout

"""ONNX Runtime's session, run by Arenite, beside the real one."""

import sys
import threading
from importlib import import_module

import numpy as np
import pytest

from arenite.compat import onnxruntime as ours
from arenite.compat.onnxruntime.capi import onnxruntime_pybind11_state as state
from arenite.planner.errors import MissingDependencyError

onnx = pytest.importorskip("onnx")
theirs = pytest.importorskip("onnxruntime")
BOTH = pytest.mark.parametrize("runtime", [ours, theirs], ids=["arenite", "onnxruntime"])
FIXED = """graph (float[2,3] x, int64[2] s) => (float[2,3] y, int64[2] t, float[] u) {
  y = Relu(x) t = Neg(s) u = ReduceSum<keepdims=0>(x)}"""
FREE = "graph (float[n,3] x, float[m,?] z) => (y) {y = Concat<axis=0>(x, z)}"
X, S = np.array([[1, -2, 3], [4, 5, -6]], np.float32), np.array([1, -2])


def model(graph, **metadata):
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>\n{graph}')
    made.producer_name, made.doc_string = "me", "a model"
    for key, value in metadata.items():
        made.metadata_props.add(key=key, value=value)
    return made.SerializeToString()


@pytest.fixture(scope="module")
def sessions():
    content = model(FIXED, names="{0: 'cat'}")
    return {each: each.InferenceSession(content) for each in (ours, theirs)}


def same(made, expected):
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def stated(arguments):
    return [(each.name, each.type, each.shape, str(each)) for each in arguments]


def test_free_inputs_and_outputs_are_stated_as_there():
    one, other = (each.InferenceSession(model(FREE)) for each in (ours, theirs))
    assert stated(one.get_inputs()) == stated(other.get_inputs())
    assert stated(one.get_outputs()) == stated(other.get_outputs())


def test_inputs_and_outputs_are_stated_as_there(sessions):
    one, other = sessions.values()
    assert stated(one.get_inputs()) == stated(other.get_inputs())
    assert stated(one.get_outputs()) == stated(other.get_outputs())


def test_metadata_is_that_of_the_model(sessions):
    one, other = (each.get_modelmeta() for each in sessions.values())
    for name in ("custom_metadata_map", "producer_name", "graph_name", "description", "domain"):
        assert getattr(one, name) == getattr(other, name)
    assert one.version == other.version


@pytest.mark.parametrize("names", [None, [], ["u"], ["t", "y"]])
def test_outputs_are_those_asked_for(sessions, names):
    same(*(each.run(names, {"x": X, "s": S}) for each in sessions.values()))


def test_outputs_are_the_caller_s(sessions):
    (first,) = sessions[ours].run(["y"], {"x": X, "s": S})
    kept = first.copy()
    for _ in range(3):
        sessions[ours].run(["y"], {"x": X + 1, "s": S})
    np.testing.assert_array_equal(first, kept)
    first[0] = 0  # writable


@pytest.mark.parametrize(
    "feed",
    [
        {"x": X.tolist(), "s": [1, -2]},
        {"x": np.asfortranarray(X), "s": np.array([1, 0, -2, 0])[::2]},
    ],
)
def test_what_is_fed_may_be_a_list_or_not_contiguous(sessions, feed):
    same(*(each.run(None, feed) for each in sessions.values()))


WRONG = {
    "type": (["y"], {"x": X.astype(np.float64), "s": S}),
    "missing": (["y"], {"x": X}),
    "unknown input": (["y"], {"x": X, "s": S, "z": S}),
    "unknown output": (["nope"], {"x": X, "s": S}),
    "rank": (["y"], {"x": X[0], "s": S}),
    "shape": (["y"], {"x": X[:, :2], "s": S}),
    "no array": (["y"], {"x": "text", "s": S}),
    "no mapping": (["y"], [X, S]),
}


@pytest.mark.parametrize("case", WRONG)
def test_failures_have_the_names_and_the_wording_that_programs_expect(sessions, case):
    found = []
    for session in sessions.values():
        with pytest.raises(Exception) as caught:  # noqa: PT011  # compared below
            session.run(*WRONG[case])
        found.append((caught.type.__name__, str(caught.value)))
    assert found[0] == found[1]


@BOTH
def test_a_file_that_is_not_there_is_named(runtime, tmp_path):
    errors = runtime.capi.onnxruntime_pybind11_state
    with pytest.raises(errors.NoSuchFile, match=r"3 : NO_SUCHFILE : Load model from .*none.onnx"):
        runtime.InferenceSession(tmp_path / "none.onnx")


@BOTH
def test_a_file_that_is_no_model_is_refused(runtime, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"garbage")
    with pytest.raises(
        runtime.capi.onnxruntime_pybind11_state.InvalidProtobuf,
        match=r"7 : INVALID_PROTOBUF : Load model from .*bad.onnx failed:Protobuf parsing failed",
    ):
        runtime.InferenceSession(tmp_path / "bad.onnx")
    with pytest.raises(TypeError, match="Unable to load from type"):
        runtime.InferenceSession(None)


def test_what_arenite_does_not_run_is_named_when_the_session_is_made():
    with pytest.raises(state.NotImplemented, match=r"'x' is tensor\(string\)"):
        ours.InferenceSession(model("graph (string[1] x) => (string[1] y) {y = Identity(x)}"))
    unknown = model("graph (float[1] x) => (float[1] y) {y = foo.Relux(x)}")
    with pytest.raises(state.NotImplemented, match="Relux"):
        ours.InferenceSession(unknown)


def test_free_dimensions_take_few_programs(monkeypatch):
    session = ours.InferenceSession(model(FREE))
    built = []
    opened = type(session._programs)._opened

    def count(self, options):
        if str(options) not in self._open:
            built.append(options)
        return opened(self, options)

    monkeypatch.setattr(type(session._programs), "_opened", count)
    rows = np.arange(99, dtype=np.float32).reshape(33, 3)
    for count in (1, 2, 5, 3, 7, 2, 14, 1):
        (made,) = session.run(None, {"x": rows[:count], "z": rows[:2]})
        np.testing.assert_array_equal(made, np.concatenate([rows[:count], rows[:2]]))
    assert [each["dims"]["n"] for each in built] == [1, "1..8:1", "1..64:1"]
    assert len(session._programs._open) == 1
    again = ours.InferenceSession(model(FREE))  # remembers the range
    again.run(None, {"x": rows[:12], "z": rows[:2]})
    assert built[-1]["dims"]["n"] == "1..64:1"


def test_a_fixed_free_dimension_is_a_number():
    found = []
    for runtime in (ours, theirs):
        options = runtime.SessionOptions()
        options.add_free_dimension_override_by_name("n", 2)
        content = model("graph (float[n,3] x) => (float[n,3] y) {y = Abs(x)}")
        session = runtime.InferenceSession(content, options)
        with pytest.raises(Exception, match="Got invalid dimensions for input: x"):
            session.run(None, {"x": X[:1]})
        found.append((session.get_inputs()[0].shape, session.run(None, {"x": X})[0].tolist()))
    assert found[0] == found[1]


def test_element_types():
    names = ("float16", "int64", "bool", "uint8", "int8", "int32", "double")
    ports = {way: ", ".join(f"{each}[2,2] {way}{each}" for each in names) for way in "xy"}
    steps = " ".join(f"y{each} = Transpose(x{each})" for each in names)
    content = model(f"graph ({ports['x']}) => ({ports['y']}) {{{steps}}}")
    array = np.array([[1, 0], [3, 1]])
    feed = {f"x{each}": array.astype(each) for each in names}
    one, other = (each.InferenceSession(content) for each in (ours, theirs))
    assert stated(one.get_inputs()) == stated(other.get_inputs())
    same(one.run(None, feed), other.run(None, feed))


@BOTH
def test_values_are_bound(sessions, runtime):
    session, made = sessions[runtime], np.empty((2, 3), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_ortvalue_input("s", runtime.OrtValue.ortvalue_from_numpy(S))
    binding.bind_output("t")
    binding.bind_output("y", "cpu", 0, np.float32, made.shape, made.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(made, np.maximum(X, 0))
    values = {each.data_type(): each for each in binding.get_outputs()}
    assert values["tensor(int64)"].numpy().tolist() == [-1, 2]
    assert values["tensor(int64)"].shape() == [2]
    assert len(binding.copy_outputs_to_cpu()) == 2
    with pytest.raises(RuntimeError, match="Failed to find NodeArg with name: q in the def list"):
        binding.bind_cpu_input("q", X)
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError, match="At least one output should be requested"):
        session.run_with_iobinding(binding)
    (result,) = session.run_with_ort_values(["t"], {
        "x": runtime.OrtValue.ortvalue_from_numpy(X), "s": runtime.OrtValue.ortvalue_from_numpy(S),
    })  # fmt: skip
    assert result.numpy().tolist() == [-1, 2]
    assert (result.element_type(), result.device_name(), result.is_tensor()) == (7, "cpu", True)


def test_runs_from_several_threads_wait_for_each_other(sessions):
    found = []

    def work(number):
        for _ in range(20):
            found.append((number, sessions[ours].run(["y"], {"x": X * number, "s": S})[0]))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 40
    assert all(np.array_equal(made, np.maximum(X * number, 0)) for number, made in found)


@BOTH
def test_options_are_kept(runtime):
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    with pytest.raises(RuntimeError, match="does not have configuration with key: none"):
        options.get_session_config_entry("none")
    assert options.graph_optimization_level.name == "ORT_DISABLE_ALL"


def test_providers_that_are_not_there_are_noted():
    content = model(FIXED)
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available provider"):
        session = ours.InferenceSession(
            content, providers=["CUDAExecutionProvider", ("CPUExecutionProvider", {})]
        )
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert ours.get_available_providers() == ["CPUExecutionProvider"]
    assert ours.get_device() == theirs.get_device()
    assert ours.__version__ == theirs.__version__


def test_a_condition_on_a_scalar_is_decided_for_its_value():
    content = model("""graph (float[n] x, int64 rate) => (float[n] y) {
        k = Constant<value_int=8>()
        is_low = Equal(rate, k)
        y = If (is_low) <then_branch = a () => (float[n] p) {p = Neg(x)},
                         else_branch = b () => (float[n] q) {q = Abs(x)}>}""")
    session, expected = ours.InferenceSession(content), theirs.InferenceSession(content)
    for rate in (8, 16):
        feed = {"x": X[0], "rate": np.array(rate)}
        same(session.run(None, feed), expected.run(None, feed))
    assert {each for s in session._programs._open.values() for each in s.backends()} == {"arenite"}


def test_every_exception_has_the_name_and_number_of_the_original():
    there = theirs.capi.onnxruntime_pybind11_state
    for name, each in vars(state).items():
        if isinstance(each, type) and not name.startswith("_") and issubclass(each, Exception):
            assert issubclass(getattr(there, name), Exception)


def test_an_arena_file_is_a_model(tmp_path):
    import arenite

    (tmp_path / "m.onnx").write_bytes(model(FIXED))
    arenite.build(tmp_path / "m.onnx", tmp_path / "m.arena")
    session = ours.InferenceSession(tmp_path / "m.arena")
    assert [each.name for each in session.get_inputs()] == ["x", "s"]
    np.testing.assert_array_equal(session.run(["y"], {"x": X, "s": S})[0], np.maximum(X, 0))


def test_the_package_that_reads_models_is_named_where_it_is_missing(monkeypatch):
    name = "arenite.compat.onnxruntime.interface"
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install 'arenite\[onnx\]'"):
        import_module(name)

"""`Interpreter` beside LiteRT's: descriptions, results, errors."""

import os
from pathlib import Path

import numpy as np
import pytest

from arenite.compat import cache
from arenite.compat.tflite import (
    Delegate,
    Interpreter,
    InterpreterWithCustomOps,
    OpResolverType,
    experimental,
    load_delegate,
)
from support.forked import in_child
from support.tflite_operator import Given, operator_model, weights

litert = pytest.importorskip("ai_edge_litert.interpreter")
ROWS = np.array([[1, -2, 3, -4]], np.float32)


def build_here(task, model, output, options):
    """Build in this process, which takes less time than another one."""
    import arenite

    assert task == "arenite.pipeline:build"
    try:
        arenite.build(model, output, **options)
    except arenite.AreniteError as error:
        raise cache.RefusedError(str(error)) from error


@pytest.fixture(autouse=True)
def kept(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(cache, "_run", build_here)
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path_factory.getbasetemp() / "tflite"))


def network(signature="call"):
    """A file of two operators, `y = -relu(x)`, with an open number of rows."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    flatbuffers = pytest.importorskip("flatbuffers")
    open_rows = Given((1, 4), signature=(-1, 4))
    model = schema.ModelT.InitFromPackedBuf(operator_model("RELU", [open_rows], [open_rows]))
    graph = model.subgraphs[0]
    third = schema.TensorT()
    third.name, third.shape, third.shapeSignature = b"y", [1, 4], [-1, 4]
    third.type, third.buffer, third.hasRank = 0, 0, True
    graph.tensors[0].name, graph.tensors[1].name = b"x", b"t"
    graph.tensors.append(third)
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.NEG
    code.version = 1
    model.operatorCodes.append(code)
    negated = schema.OperatorT()
    negated.opcodeIndex, negated.inputs, negated.outputs = 1, [1], [2]
    graph.operators.append(negated)
    graph.outputs = [2]
    stated = schema.SignatureDefT()
    stated.signatureKey, stated.subgraphIndex = signature.encode(), 0
    stated.inputs, stated.outputs = [_entry(schema, "a", 0)], [_entry(schema, "b", 2)]
    model.signatureDefs = [stated]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _entry(schema, name, index):
    entry = schema.TensorMapT()
    entry.name, entry.tensorIndex = name.encode(), index
    return entry


QUANTISED = {"scales": (0.05,), "zero_point": 3}
CONVOLUTION = (
    "CONV_2D",
    [
        Given((1, 5, 5, 2), "int8", **QUANTISED),
        weights(np.arange(-27, 27, dtype=np.int8).reshape(3, 3, 3, 2), scales=(0.1, 0.2, 0.3)),
        weights(np.array([5, -5, 9], np.int32), scales=(0.005, 0.01, 0.015)),
    ],
    [Given((1, 3, 3, 3), "int8", scales=(0.4,), zero_point=-7)],
    ("Conv2DOptions", {"strideH": 1, "strideW": 1, "padding": 1}),
)


def same(ours, theirs):
    """Tell whether descriptions are equal, types of arrays included."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, np.ndarray):
        return ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    return bool(ours == theirs)


@pytest.fixture
def both():
    """Our interpreter and LiteRT's on the same file."""

    def of(content, **options):
        return Interpreter(model_content=content, **options), litert.Interpreter(
            model_content=content, **options
        )

    return of


def test_descriptions_and_results_are_those_of_litert(both):
    ours, theirs = both(operator_model(*CONVOLUTION))
    image = np.arange(-25, 25, dtype=np.int8).reshape(1, 5, 5, 2)
    found = []
    for each in (ours, theirs):
        each.allocate_tensors()
        (given,), (result,) = each.get_input_details(), each.get_output_details()
        each.set_tensor(given["index"], image)
        each.invoke()
        assert (each.get_tensor(given["index"]) == image).all()
        found.append(each.get_tensor(result["index"]))
    assert (found[0] == found[1]).all()
    assert len(np.unique(found[0])) > 5
    for name in ("get_input_details", "get_output_details", "get_tensor_details", "num_subgraphs"):
        assert same(getattr(ours, name)(), getattr(theirs, name)()), name
    assert same(ours._get_ops_details()[0], theirs._get_ops_details()[0])
    assert same(ours.get_tensor(1), theirs.get_tensor(1))


def test_open_lengths_follow_a_resize(both):
    ours, theirs = both(network())
    for shape, strict in (((3, 4), True), ((2, 5), False)):
        for each in (ours, theirs):
            each.resize_tensor_input(0, shape, strict=strict)
            each.allocate_tensors()
            each.set_tensor(0, np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 7)
            each.invoke()
        for name in ("get_input_details", "get_output_details"):
            assert same(getattr(ours, name)(), getattr(theirs, name)())
        assert same(ours.get_tensor(2), theirs.get_tensor(2))
    ours.resize_tensor_input(0, [1, 4])
    ours.allocate_tensors()
    assert ours.get_output_details()[0]["shape"].tolist() == [1, 4]


def test_many_sizes_take_programs_for_ranges(monkeypatch):
    built = []

    def build_and_note(task, model, output, options):
        built.append(options["shapes"]["x"][0] if options else None)
        build_here(task, model, output, options)

    monkeypatch.setattr(cache, "_run", build_and_note)
    monkeypatch.setenv("ARENITE_CACHE", "off")
    interpreter = Interpreter(model_content=network())
    for rows in (2, 3, 5, 6, 7, 8, 1, 40, 4):
        interpreter.resize_tensor_input(0, [rows, 4])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.repeat(ROWS, rows, 0))
        interpreter.invoke()
        assert interpreter.get_output_details()[0]["shape"].tolist() == [rows, 4]
        assert interpreter.get_tensor(2).tolist() == [[-1, 0, -3, 0]] * rows
    assert list(dict.fromkeys(built)) == [None, 2, 3, "1..32:1", "1..256:1"]


def test_signatures_are_run_by_name(both):
    ours, theirs = both(network())
    assert ours.get_signature_list() == theirs.get_signature_list()
    for rows in (1, 2):
        given = np.repeat(ROWS, rows, 0)
        runners = [each.get_signature_runner() for each in (ours, theirs)]
        assert same(*(run(a=given) for run in runners))
        assert same(*(run.get_input_details() for run in runners))
        assert same(*(run.get_output_details() for run in runners))
    run = ours.get_signature_runner("call")
    with pytest.raises(ValueError, match="Invalid number of inputs"):
        run()
    with pytest.raises(ValueError, match="Invalid Input name"):
        run(x=ROWS)
    with pytest.raises(ValueError, match="Invalid signature_key"):
        ours.get_signature_runner("none")


def test_views_write_inputs_and_read_outputs():
    interpreter = Interpreter(model_content=network())
    interpreter.allocate_tensors()
    given, result = interpreter.tensor(0), interpreter.tensor(2)
    kept = given()
    for number in (1, 2):
        kept[:] = number
        interpreter.invoke()
        assert (result() == -number).all()
    before = interpreter.get_tensor(2)
    interpreter.set_tensor(0, ROWS)
    interpreter.invoke()
    assert (before == -2).all()


def test_results_of_all_operators_are_kept_on_request():
    interpreter = Interpreter(model_content=network(), experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, ROWS)
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [[1, 0, 3, 0]]
    assert [each["index"] for each in interpreter.get_output_details()] == [2]
    plain = Interpreter(model_content=network())
    plain.allocate_tensors()
    with pytest.raises(ValueError, match=r"'t'.* experimental_preserve_all_tensors=True"):
        plain.get_tensor(1)


def test_variables_are_reset():
    states = Given((1, 6), is_variable=True)
    content = operator_model(
        "SVDF",
        [
            Given((1, 2)),
            weights(np.ones((2, 2), np.float32)),
            weights(np.ones((2, 3), np.float32)),
            None,
            states,
        ],
        [Given((1, 2))],
        ("SVDFOptions", {"rank": 1}),
    )
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    found = []
    for _ in range(2):
        interpreter.set_tensor(0, np.ones((1, 2), np.float32))
        interpreter.invoke()
        found.append(interpreter.get_tensor(4)[0, 0])
    assert found == [2, 4]
    interpreter.reset_all_variables()
    interpreter.invoke()
    assert interpreter.get_tensor(4)[0, 0] == 2


REFUSED = {
    "no model": {},
    "both": {"model_path": "m.tflite", "model_content": b"x"},
    "no file": {"model_path": "/nowhere/m.tflite"},
    "no TFLite file": {"model_content": b"wrong_identifier"},
    "too short": {"model_content": b"short"},
    "threads 0": {"model_content": b"x", "num_threads": 0},
    "threads 4.2": {"model_content": b"x", "num_threads": 4.2},
    "resolver": {"model_content": b"x", "experimental_op_resolver_type": "test"},
}


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_constructors_refuse_as_litert_does(options):
    with pytest.raises(ValueError) as theirs:  # noqa: PT011  # its text is compared
        litert.Interpreter(**options)
    with pytest.raises(ValueError) as ours:  # noqa: PT011
        Interpreter(**options)
    assert str(ours.value)[:20] == str(theirs.value)[:20]


MISUSES = {
    "invoke first": (False, lambda i: i.invoke()),
    "set first": (False, lambda i: i.set_tensor(0, ROWS)),
    "get first": (False, lambda i: i.get_tensor(2)),
    "view first": (False, lambda i: i.tensor(0)()),
    "type": (True, lambda i: i.set_tensor(0, ROWS.astype(np.int8))),
    "rank": (True, lambda i: i.set_tensor(0, ROWS[0])),
    "length": (True, lambda i: i.set_tensor(0, ROWS[:, :3])),
    "set beyond": (True, lambda i: i.set_tensor(9, ROWS)),
    "get beyond": (True, lambda i: i.get_tensor(-1)),
    "get of another subgraph": (True, lambda i: i.get_tensor(0, 1)),
    "details beyond": (True, lambda i: i._get_tensor_details(9, 0)),
    "operator beyond": (True, lambda i: i._get_op_details(9)),
    "subgraph": (True, lambda i: i.get_tensor_details(1)),
}


@pytest.mark.parametrize(("ready", "misuse"), MISUSES.values(), ids=MISUSES)
def test_misuse_is_refused_as_litert_does(both, ready, misuse):
    errors = []
    for each in both(network()):
        if ready:
            each.allocate_tensors()
        with pytest.raises((ValueError, RuntimeError)) as caught:
            misuse(each)
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    assert str(errors[0])[:18] == str(errors[1])[:18]


def test_there_are_no_more_threads_than_processors(monkeypatch):
    opened = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(cache, "Session", lambda _, threads: opened.append(threads) or object())
    for threads in (None, 1, 2, 16):
        Interpreter(model_content=network(), num_threads=threads)
    assert opened == [1, 1, 2, 2]


def test_a_forked_child_opens_the_model_again(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    interpreter = Interpreter(model_content=network(), num_threads=2)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, ROWS)

    def used():
        interpreter.invoke()
        assert interpreter.get_tensor(2).tolist() == [[-1, 0, -3, 0]]

    assert in_child(used) == 0
    used()


def test_shapes_that_cannot_be_are_refused():
    interpreter = Interpreter(model_content=network())
    with pytest.raises(RuntimeError, match="ResizeInputTensorStrict"):
        interpreter.resize_tensor_input(0, [1, 5], strict=True)
    with pytest.raises(ValueError, match="1D instead of 0"):
        interpreter.resize_tensor_input(0, 4)
    with pytest.raises(TypeError, match="str"):
        interpreter.resize_tensor_input("x", [1, 4])
    with pytest.raises(RuntimeError, match="tensor 2 is not an input"):
        interpreter.resize_tensor_input(2, [1, 4])
    with pytest.raises(RuntimeError, match=r"\(-1, 4\)"):
        interpreter.resize_tensor_input(0, [-1, 4])


def test_an_operator_that_nothing_runs_is_named():
    content = operator_model("Unheard", [Given((1, 4))], [Given((1, 4))], ("", b"\0"))
    with pytest.raises(ValueError, match="Unheard"):
        Interpreter(model_content=content)


def test_delegates_are_ignored_with_a_warning():
    with pytest.warns(UserWarning, match=r"libedgetpu.so.1.* is ignored"):
        delegate = load_delegate("libedgetpu.so.1", {"device": "usb"})
    assert isinstance(delegate, Delegate)
    assert experimental.load_delegate is load_delegate
    with pytest.warns(UserWarning, match="delegates are ignored"):
        Interpreter(model_content=network(), experimental_delegates=[delegate])
    with pytest.raises(ValueError, match="custom_op_registerers"):
        InterpreterWithCustomOps(["library"], model_content=network())
    kinds = OpResolverType.__members__
    assert kinds.keys() == litert.OpResolverType.__members__.keys()


def test_a_program_file_is_taken_as_it_is(tmp_path):
    import arenite

    (tmp_path / "m.tflite").write_bytes(network())
    arenite.build(tmp_path / "m.tflite", tmp_path / "m.arena")
    interpreter = Interpreter(str(Path(tmp_path, "m.arena")))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], ROWS)
    interpreter.invoke()
    (result,) = interpreter.get_output_details()
    assert result["name"] == "y"
    assert interpreter.get_tensor(result["index"]).tolist() == [[-1, 0, -3, 0]]
    interpreter.resize_tensor_input(0, [2, 4])
    with pytest.raises(RuntimeError, match=r"m\.arena has the sizes that it was built for"):
        interpreter.allocate_tensors()

"""A plan in the metadata of an ONNX model, beside what onnxsim writes and reads there."""

import json

import onnx
import pytest

from arenite.planner.errors import InvalidPlanError, ModelFormatError
from arenite.planner.importers import read
from arenite.planner.importers.annotations import SHARED_BY_READERS, annotated, read_annotations
from arenite.planner.planfile import ModelReference, PlanFile
from arenite.planner.planfile.errors import (
    InconsistentError,
    MissingFieldError,
    NotAPlanFileError,
    OutOfRangeError,
    StaleRecordsError,
    WrongTypeError,
)
from arenite.planner.programs.rules import Boundary
from arenite.strategies import find
from support.tiny_onnx import parse, save

CHAIN = """(float[4,6] x) => (float[24,2] y) <float[1,2] w>
{a = Relu(x) s = Constant<value_ints=[24,1]>() b = Reshape(a, s) c = MatMul(b, w)
 d = Exp(c) y = Add(d, c)}"""


def planned(path, *, aliases=SHARED_BY_READERS, alignment=16, dims=None):
    source = read(path, aliases=aliases, alignment=alignment, dims=dims)
    reference = ModelReference(source.name, source.digest, dims or {})
    plan = find("best")(source.problem)
    return PlanFile(
        reference, "generic", Boundary.INCLUDE, alignment, aliases, source.problem, plan
    )


@pytest.fixture
def model(tmp_path):
    return save(tmp_path, parse(CHAIN))


@pytest.fixture
def written(model):
    """An annotated model, and how to change it."""
    path = model.with_name("annotated.onnx")
    path.write_bytes(annotated(model, planned(model)))

    def change(edit):
        proto = onnx.load(path)
        edit(proto)
        path.write_bytes(proto.SerializeToString())
        return path

    return change


def metadata(message):
    return {entry.key: entry.value for entry in message.metadata_props}


def values_of(model):
    graph = model.graph
    return {each.name: each for each in (*graph.input, *graph.output, *graph.value_info)}


def set_entry(message, key, value):
    for entry in message.metadata_props:
        if entry.key == key:
            entry.value = value


def test_what_is_written_is_read_back(model):
    for aliases in ((), SHARED_BY_READERS):
        plan_file = planned(model, aliases=aliases)
        path = model.with_name("annotated.onnx")
        path.write_bytes(annotated(model, plan_file))
        found = read_annotations(path)
        assert found.problem == plan_file.problem
        assert (found.plan.offsets, found.plan.strategy, found.aliases, found.alignment) == (
            plan_file.plan.offsets, plan_file.plan.strategy, aliases, 16,
        )  # fmt: skip


def test_the_annotated_model_is_a_model_of_the_same_values(written):
    path = written(lambda _: None)
    onnx.checker.check_model(onnx.load(path), full_check=True)


def test_every_planned_value_has_its_place_and_the_model_its_totals(model, written):
    plan_file = planned(model)
    proto = onnx.load(written(lambda _: None))
    values = values_of(proto)
    offsets = {
        name: offset
        for record, offset in zip(plan_file.problem.records, plan_file.plan.offsets, strict=True)
        for name in record.tensors
    }
    stated = {
        name: int(metadata(value)["onnxsim.mem_offset"])
        for name, value in values.items()
        if "onnxsim.mem_offset" in metadata(value)
    }
    assert stated == offsets
    assert metadata(values["c"])["onnxsim.mem_size"] == str(24 * 2 * 4)
    totals = metadata(proto)
    assert totals["onnxsim.memory_plan_arena_bytes"] == str(plan_file.plan.height)
    assert totals["onnxsim.memory_plan_unplanned_count"] == "0"
    naive = int(totals["onnxsim.memory_plan_naive_bytes"])
    assert totals["onnxsim.memory_plan_compression_ratio"] == (
        f"{1 - plan_file.plan.height / naive:.4f}"
    )


def test_free_dimensions_have_the_lengths_that_were_planned(tmp_path):
    model = save(tmp_path, parse("(float[N,4] x) => (float[N,4] y) {a = Exp(x) y = Neg(a)}"))
    path = tmp_path / "annotated.onnx"
    path.write_bytes(annotated(model, planned(model, dims={"N": 3})))
    assert read_annotations(path).problem.records[0].size == 48
    dims = values_of(onnx.load(path))["a"].type.tensor_type.shape.dim
    assert [each.dim_value for each in dims] == [3, 4]


def test_what_the_caller_owns_is_counted_as_unplanned(model):
    source = read(model, boundary=Boundary.EXCLUDE, alignment=16)
    plan_file = PlanFile(
        ModelReference(source.name, source.digest), "generic", Boundary.EXCLUDE, 16, (),
        source.problem, find("best")(source.problem),
    )  # fmt: skip
    path = model.with_name("annotated.onnx")
    path.write_bytes(annotated(model, plan_file))
    totals = metadata(onnx.load(path))
    assert totals["onnxsim.memory_plan_unplanned"] == "x, y"
    assert read_annotations(path).boundary is Boundary.EXCLUDE


def test_a_plan_of_another_target_or_model_is_refused(model):
    from dataclasses import replace

    plan_file = planned(model)
    with pytest.raises(StaleRecordsError, match="--target generic"):
        annotated(model, replace(plan_file, target="arenite"))
    steps = plan_file.problem.steps
    moved = replace(plan_file.problem, steps=(steps[1], steps[0], *steps[2:]))
    with pytest.raises(StaleRecordsError, match="order"):
        annotated(model, replace(plan_file, problem=moved))


def test_weights_beside_the_model_come_into_the_file(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(parse(CHAIN), path, save_as_external_data=True, location="w.data", size_threshold=0)
    data = annotated(path, planned(path))
    (tmp_path / "w.data").unlink()
    (weight,) = onnx.ModelProto.FromString(data).graph.initializer
    assert onnx.numpy_helper.to_array(weight).shape == (1, 2)
    with pytest.raises(ModelFormatError, match=r"tensor 'w': .* is missing"):
        annotated(path, planned(path))


@pytest.mark.parametrize(
    ("edit", "error", "reason"),
    [
        (
            lambda model: [v.ClearField("metadata_props") for v in values_of(model).values()],
            NotAPlanFileError,
            "arenite annotate",
        ),
        (
            lambda model: values_of(model)["c"].ClearField("metadata_props"),
            MissingFieldError,
            "'c' has no offset",
        ),
        (
            lambda model: set_entry(values_of(model)["c"], "onnxsim.mem_size", "8"),
            InconsistentError,
            "'c' has 8 B in the plan, 192 B",
        ),
        (
            lambda model: set_entry(values_of(model)["c"], "onnxsim.mem_offset", "-8"),
            WrongTypeError,
            "expected a whole number",
        ),
        (
            lambda model: set_entry(values_of(model)["c"], "onnxsim.mem_offset", "9" * 40),
            OutOfRangeError,
            "2\\^63",
        ),
        (
            lambda model: set_entry(model, "onnxsim.memory_plan_arena_bytes", "16"),
            InconsistentError,
            "16 B",
        ),
        (
            lambda model: set_entry(model, "arenite.plan", "{"),
            WrongTypeError,
            "not JSON",
        ),
        (
            lambda model: set_entry(model, "arenite.plan", "{}"),
            MissingFieldError,
            "no 'aliases'",
        ),
        (
            lambda model: set_entry(values_of(model)["x"], "onnxsim.mem_offset", "8"),
            InvalidPlanError,
            "not a multiple of 16",
        ),
    ],
)  # fmt: skip
def test_metadata_that_are_no_plan_are_refused(written, edit, error, reason):
    with pytest.raises(error, match=reason):
        read_annotations(written(edit))


def test_unknown_sharing_is_refused(written):
    def edit(model):
        own = json.loads(metadata(model)["arenite.plan"])
        set_entry(model, "arenite.plan", json.dumps({**own, "aliases": ["hopes"]}))

    with pytest.raises(WrongTypeError, match="hopes"):
        read_annotations(written(edit))


def test_onnxsim_reads_the_keys_that_we_write(written):
    onnxsim = pytest.importorskip("onnxsim", reason="the extra 'bench' is not installed")
    ours = onnx.load(written(lambda _: None))
    theirs = onnxsim.annotate_memory_plan(parse(CHAIN))
    assert set(metadata(theirs)) <= set(metadata(ours))
    for name in "xabcdy":  # not of the constant, which we leave outside the arena
        keys = set(metadata(values_of(theirs)[name]))
        assert (
            keys
            == set(metadata(values_of(ours)[name]))
            == {"onnxsim.mem_offset", "onnxsim.mem_size"}
        )


@pytest.mark.parametrize(
    "text", [CHAIN, "(float[4] x) => (y) {a = Exp(x) b = Neg(x) c = Add(a, b) y = Add(c, x)}"]
)
def test_a_plan_of_onnxsim_is_read_and_checked(tmp_path, text):
    onnxsim = pytest.importorskip("onnxsim", reason="the extra 'bench' is not installed")
    theirs = onnxsim.annotate_memory_plan(parse(text))
    path = save(tmp_path, theirs)
    found = read_annotations(path)
    assert found.plan.strategy == "onnxsim"
    assert str(found.plan.height) == metadata(theirs)["onnxsim.memory_plan_arena_bytes"]

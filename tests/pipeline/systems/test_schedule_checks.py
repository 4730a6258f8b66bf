"""Programs of several models whose plan or whose schedule is wrong, each refused by its rule."""

import copy

import pytest

from arenite.pipeline.making.program_files import ProgramFile
from arenite.pipeline.making.schedule_checks import (
    OverwrittenOutputError,
    SharedAtOnceError,
    TooManyOrdersError,
    check_system,
)
from arenite.pipeline.systems import plan_system
from arenite.planner.errors import ModelError
from arenite.planner.programs import UnwrittenRowsError
from arenite.runtime import ProgramError, Session
from arenite.runtime.program import program_pieces, root_of
from support.edited_programs import edited
from support.small_systems import CONNECTED, write_system
from support.tiny_graphs import step


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planned")
    names = '"detector", "landmarks", "iris"'
    return plan_system(
        write_system(folder, names, *names.replace('"', "").split(", "), more=CONNECTED,
                     keep="detector.boxes")
    )  # fmt: skip


@pytest.fixture
def root(planned):
    pieces = list(program_pieces(planned.built.compiled.assemble(planned.plan)))
    with Session.of_pieces(pieces, "system") as session:
        ProgramFile.of(session).check()
        return copy.deepcopy(dict(root_of(session.flatbuffer())))


def schedule(*sections):
    return [{"kind": kind, "parts": list(parts)} for kind, *parts in sections]


@pytest.mark.parametrize(
    ("sections", "error", "words"),
    [
        ([("sequence", 0, 1, -2), ("maybe", 2)], None, ""),
        ([("sequence", 0, 2, 1)], OverwrittenOutputError, "overwritten by 'iris' and 'landmarks'"),
        ([("sequence", 1, 0, 2)], OverwrittenOutputError, "is not made and 'landmarks' reads it"),
        ([("sequence", 0, 1, -2), ("repeat", 2)], OverwrittenOutputError, "'iris' reads it, in t"),
        ([("sequence", 0, -2), ("any_order", 1, 2)], OverwrittenOutputError, "'landmarks' reads"),
        ([("sequence", 0, -2), ("at_once", 1, 2)], SharedAtOnceError, "'landmarks' and 'iris'"),
    ],
)  # fmt: skip
def test_orders_for_which_it_was_not_planned_are_refused(root, sections, error, words):
    root["schedule"] = schedule(*sections)
    if error is None:
        assert check_system(root)
        return
    with pytest.raises(error) as raised:
        check_system(root)
    assert words in str(raised.value)


def test_an_output_that_is_not_kept_is_found_to_be_overwritten(root):
    root["stages"][1]["keeps"] = [
        number for number, port in enumerate(root["outputs"]) if port["name"] == "landmarks.points"
    ]
    with pytest.raises(OverwrittenOutputError, match="'iris' and it is kept"):
        check_system(root)


def test_a_model_that_finds_no_input_is_refused(root):
    root["stages"][2]["reads"] = []
    with pytest.raises(UnwrittenRowsError):
        check_system(root)


def test_a_schedule_of_too_many_orders_is_refused(root):
    parts = [-2 - number for number in range(15)]
    maybe = [("maybe", 0)] * 15
    root["schedule"] = schedule(("sequence", 0, 1, 2, *parts), *maybe)
    with pytest.raises(TooManyOrdersError, match="more than 20000 orders"):
        check_system(root)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda root: root["stages"][0].update(turns=0), "'detector' has no turn"),
        (lambda root: root["stages"][0].update(turns=1 << 31), "that are left"),
        (lambda root: root["stages"][0].update(inputs=3), "3 inputs of 2 that are left"),
        (lambda root: root["stages"].pop(), "stages leave out turns"),
        (lambda root: root["stages"][1].update(name="detector"), "has a duplicate name"),
        (lambda root: root["stages"][1].update(reads=[2]), "reads output 2, expected 0 to 2"),
        (lambda root: root["stages"][1].update(keeps=[0]), "keeps output 0, expected 2 to 3"),
        (lambda root: root["stages"].extend(root["stages"] * 100), "303 stages, expected at m"),
        (lambda root: root.pop("schedule"), "the schedule has 0 sections"),
        (lambda root: root.pop("stages"), "there is a schedule, and no stage"),
        (lambda root: root.update(schedule=schedule(("sequence", 0, 1))), "leaves out a stage"),
        (lambda root: root.update(schedule=schedule(("sequence", 0, 1, 2, 2))), "more than once"),
        (lambda root: root.update(schedule=schedule(("sequence", 0, 1, 2, 3))), "a part 3"),
        (lambda root: root.update(schedule=schedule(("sequence", 0, 1, 2, -1))), "a part -1"),
        (lambda root: root.update(schedule=schedule(("sequence",))), "section 0 of the schedule"),
        (lambda root: root.update(schedule=schedule(("maybe", 0, 1, 2), ("maybe", 0))), "part 0"),
        (lambda root: root["schedule"].extend(root["schedule"] * 300), "sections, expected 1"),
    ],
)
def test_files_that_lie_about_their_stages_are_refused(planned, edit, words):
    assembly = planned.built.compiled.assemble(planned.plan)
    with pytest.raises(ProgramError) as error:
        Session.of_pieces([edited(assembly, edit)], "hostile").close()
    assert words in str(error.value)


@pytest.mark.parametrize("port", ["inputs", "outputs"])
def test_a_port_that_is_not_live_when_its_stage_needs_it_is_refused(planned, port):
    def edit(root):
        stages = root["stages"]
        stages[0]["turns"] -= 1
        stages[1]["turns"] += 1
        if port == "inputs":  # the last model takes all the turns but two
            stages[2]["turns"] += stages[1]["turns"] + stages[0]["turns"] - 2
            stages[0]["turns"] = stages[1]["turns"] = 1

    assembly = planned.built.compiled.assemble(planned.plan)
    with pytest.raises(ProgramError, match="lies in no record that is live"):
        Session.of_pieces([edited(assembly, edit)], "hostile").close()


def test_spans_need_steps_and_tensors():
    from arenite.planner.programs import Program
    from arenite.planner.tensors import DType, Tensor, TensorKind

    tensors = [Tensor("x", DType.UINT8, (8,), TensorKind.INPUT), Tensor("y", DType.UINT8, (8,))]
    steps = [step("one", "Neg", ("x",), ("y",))]
    for spans, words in (
        ({"z": ("one", "one")}, "tensor 'z', which is not in the program"),
        ({"x": ("one", "two")}, "'one' to 'two' is no span"),
    ):
        with pytest.raises(ModelError, match=words):
            Program.of("spans", tensors, steps, ("x",), ("y",), spans=spans)

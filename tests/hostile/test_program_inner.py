"""Programs inside the steps of a program: each lie is refused."""

import copy

import pytest

pytest.importorskip("tflite", reason="the extra 'tflite' is not installed")

from arenite.pipeline.making.program_files import ProgramFile
from arenite.pipeline.targets.compiling import compile_model
from arenite.planner.placement import WrongHeightError
from arenite.runtime import ProgramError, Session
from arenite.runtime.lowering.tflite import loops
from arenite.strategies import find
from support.edited_programs import edited
from support.tiny_loops import nested, nested_deep


def assembled(folder, model):
    path = folder / "m.tflite"
    path.write_bytes(model)
    compiled = compile_model(path)
    return compiled.assemble(find("best")(compiled.source.problem))


@pytest.fixture(scope="module")
def assembly(tmp_path_factory):
    return assembled(tmp_path_factory.mktemp("loop"), nested().model)


def loop(root):
    return next(each for each in root["steps"] if each["kernel_type"] == "While")


def condition(root):
    return root["inner"][0]


def body(root):
    return root["inner"][1]


def first_input(part):
    return part["inputs"][0]["tensor"]


def apart(root):
    """Let the body have a second memory that nothing lies in."""
    body(root)["memories"].append(body(root)["memories"][0] | {"name": "second", "size": 0})


def other_lane(root):
    body(root)["steps"][0]["lane"] = 1


def external(root):
    step = body(root)["steps"][0]
    step |= {"kernel_type": "External", "kernel": {"runtime": "onnxruntime", "model": 0}}


def ranged(root):
    root["dimensions"] = [{"name": "n", "low": 1, "high": 2}]


def large(root):
    condition(root)["memories"][0]["size"] = 1 << 20


def narrow(root):
    for index in (loop(root)["inputs"][2], loop(root)["outputs"][2]):
        root["tensors"][index]["type"] = "float16"


def nowhere(root):
    loop(root)["scratch"] = -1


def another_verdict(root):
    condition(root)["outputs"] = [dict(condition(root)["inputs"][0])]


def swapped(part):
    """Let the first two ports of a kind have the places of each other."""

    def edit(root, kind):
        first, second, *others = part(root)[kind]
        part(root)[kind] = [second, first, *others]

    return edit


EDITS = {
    "a program that does not exist": (
        lambda r: loop(r)["kernel"].update(body=9), "runs inner program 9 of 2"),
    "one program twice": (
        lambda r: loop(r)["kernel"].update(body=0), "runs inner program 0, which is another's"),
    "a program that no step runs": (
        lambda r: r["inner"].append(copy.deepcopy(condition(r))), "inner program 2 is of no step"),
    "no programs": (lambda r: r.pop("inner"), "runs inner program 0 of 0"),
    "a second memory": (apart, "inner program 1 has other memories than one"),
    "a memory that is read alone": (
        lambda r: body(r)["memories"][0].update(writable=False), "other memories than one"),
    "a spilled memory": (
        lambda r: body(r)["memories"][0].update(spilled=True), "other memories than one"),
    "other weights": (
        lambda r: body(r).update(weights_size=body(r)["weights_size"] - 64),
        "inner program 1 has other weights"),
    "a state": (
        lambda r: body(r).update(states=[{"tensor": first_input(body(r))}]), "has dimensions, st"),
    "a dimension": (
        lambda r: body(r).update(dimensions=[{"name": "n", "low": 1, "high": 2}]),
        "has dimensions, states"),
    "a stage": (
        lambda r: body(r).update(stages=[{"name": "s", "turns": 1}]), "states, stages"),
    "a subrange": (
        lambda r: body(r).update(subranges=[copy.deepcopy(condition(r))]), "stages, subranges"),
    "another lane": (other_lane, "subranges, lanes"),
    "another runtime": (external, "steps of another runtime"),
    "sizes of a range": (ranged, "a program with dimensions has inner programs"),
    "a large program": (large, "does not hold the 1048576 B of its program"),
    "no working memory": (nowhere, "its working memory of 0 B does not hold"),
    "a large alignment": (
        lambda r: condition(r)["memories"][0].update(alignment=4096), "not aligned to 4096 B"),
    "records without an end": (
        lambda r: body(r).update(records=[]), "live"),
    "a tensor outside of its memory": (
        lambda r: body(r)["tensors"][0].update(offset=1 << 40), "outside"),
    "fewer results": (lambda r: loop(r)["outputs"].pop(), "not as many as inputs"),
    "an input left out": (
        lambda r: loop(r)["inputs"].__setitem__(0, -1), "a required input is missing"),
    "results in another order": (
        lambda r: loop(r).update(outputs=loop(r)["outputs"][::-1]), "another type or shape"),
    "carried values of 16 bits": (narrow, "inputs of its condition are not the carried"),
    "a condition of other values": (
        lambda r: swapped(condition)(r, "inputs"), "inputs of its condition are not the carried"),
    "a condition of fewer values": (
        lambda r: condition(r)["inputs"].pop(), "inputs of its condition are not the carried"),
    "a body of other values": (
        lambda r: swapped(body)(r, "inputs"), "inputs of its body are not the carried"),
    "a body that makes other values": (
        lambda r: swapped(body)(r, "outputs"), "outputs of its body are not the carried"),
    "a verdict that is a number": (another_verdict, "does not make one boolean"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_a_program_inside_that_lies_is_refused(assembly, name):
    edit, reason = EDITS[name]
    with pytest.raises(ProgramError, match=reason):
        Session.of_pieces([edited(assembly, edit)], "hostile")


def test_programs_lie_no_deeper_than_eight(tmp_path, monkeypatch):
    with Session.of_pieces([edited(assembled(tmp_path, nested_deep(8)), bool)], "deep") as session:
        session.invoke()
    monkeypatch.setattr(loops, "MAX_DEPTH", 99)
    deeper = edited(assembled(tmp_path, nested_deep(9)), bool)
    with pytest.raises(ProgramError, match="inner program 0 lies more than 8 programs deep"):
        Session.of_pieces([deeper], "deeper")


def test_the_height_of_a_program_inside_is_checked(assembly, tmp_path):
    def higher(root):
        small, large = sorted(root["inner"], key=lambda each: each["memories"][0]["size"])
        small["memories"][0]["size"] = large["memories"][0]["size"]

    path = tmp_path / "m.arena"
    path.write_bytes(edited(assembly, higher))
    with pytest.raises(WrongHeightError):
        ProgramFile.read(path).check()

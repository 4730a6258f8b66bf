"""Program files that lie about what moves, where to, and who waits for it."""

import math
import random
from collections import Counter

import pytest

from arenite.pipeline.targets.compiling import lower_model
from arenite.planner.programs.costs import LEAST
from arenite.runtime import ProgramError, ResourceError
from arenite.strategies import find_policy
from support.edited_programs import edited, file_of, flipped, load
from support.tiny_onnx import parse, save, with_random_weights
from support.trading import CARRIED, assembled, lowered_step, masked_step_file, traded


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    """The parts of a valid program that spills and fetches."""
    lowered = lowered_step(tmp_path_factory.mktemp("step"))
    return assembled(lowered, traded(lowered, find_policy("offload-prefetch"), LEAST))


def numbers(root, kind):
    return [i for i, each in enumerate(root["steps"]) if each["kernel_type"] == kind]


def first(root, kind):
    return root["steps"][numbers(root, kind)[0]]


def computing(root):
    return next(each for each in root["steps"] if each["inputs"] and "lane" not in each)


def tensor(root, index):
    return root["tensors"][index]


def spilled(root):
    """The tensor that is spilled first."""
    return first(root, "Spill")["outputs"][0]


def memory(root):
    return next(each for each in root["memories"] if each.get("spilled"))


def awaits_a_later_one(root):
    first(root, "Wait")["awaits"] = [numbers(root, "Fetch")[-1]]


def awaits_nothing(root):
    for number in numbers(root, "Wait"):
        root["steps"][number]["awaits"] = []


def twice(root):
    root["turns"] = [{"step": i, "first": 0, "count": 0} for i in range(len(root["steps"]))]
    root["turns"][-1]["step"] = numbers(root, "Spill")[0]


def short_life(root):
    """Let what is spilled first die while it is on its way."""
    source = tensor(root, first(root, "Spill")["inputs"][0])
    turn = numbers(root, "Spill")[0]
    record = next(
        each for each in root["records"]
        if each.get("memory", 0) == source["memory"] and each["start"] <= turn < each["end"]
        and each["offset"] <= source["offset"] < each["offset"] + each["size"]
    )  # fmt: skip
    record["end"] = turn + 1


def constant(root):
    return next(i for i, each in enumerate(root["tensors"]) if each["place"] == "weights")


def waits_elsewhere(root):
    step = next(
        each for each in reversed(root["steps"])
        if each["inputs"] and min(each["inputs"]) >= 0 and "lane" not in each
    )  # fmt: skip
    names = {
        f"{kind}_names": [str(each) for each in step[f"{kind}s"]] for kind in ("input", "output")
    }
    step["kernel_type"] = "External"
    step["kernel"] = {"runtime": "onnxruntime", "model": constant(root), "op_type": "Any", **names}
    step["awaits"] = [numbers(root, "Spill")[0]]


def scratch_there(root):
    place = {key: tensor(root, spilled(root))[key] for key in ("place", "memory", "offset")}
    computing(root)["scratch"] = len(root["tensors"])
    root["tensors"].append({"name": "there", "type": "uint8", "shape": [4], **place})


LIES = {
    "a lane that is not there": (
        lambda r: first(r, "Spill").update(lane=2), "is on lane 2 of 2"),
    "two that compute at once": (
        lambda r: computing(r).update(lane=1), "computes on a lane of its own"),
    "a move that awaits another": (
        lambda r: first(r, "Fetch").update(awaits=[numbers(r, "Spill")[0]]),
        "awaits steps on a lane that runs in order"),
    "waiting for a step that is not there": (
        lambda r: first(r, "Wait").update(awaits=[2**32 - 1]), "awaits step 4294967295 of"),
    "waiting for one that computes": (
        lambda r: first(r, "Wait").update(awaits=[r["steps"].index(computing(r))]),
        "which is on its own lane"),
    "waiting for what comes later": (awaits_a_later_one, "which has not run at step"),
    "waiting for nothing": (awaits_nothing, "may still use tensors that are no longer"),
    "waiting in another runtime": (
        waits_elsewhere, "awaits steps, unsupported in ONNX Runtime"),
    "a move twice": (twice, "of another lane runs a second time at turn"),
    "a tensor that dies on its way": (short_life, "may still use tensors that are no longer"),
    "computing with what is spilled": (
        lambda r: computing(r)["inputs"].__setitem__(0, spilled(r)),
        "which is spilled and can only be fetched"),
    "writing what is spilled": (
        lambda r: computing(r)["outputs"].__setitem__(0, spilled(r)), "which is spilled"),
    "spilling what is spilled": (
        lambda r: first(r, "Spill")["inputs"].__setitem__(0, spilled(r)), "which is spilled"),
    "working memory in a file": (scratch_there, "which is spilled"),
    "an output in a file": (
        lambda r: r["outputs"][0].update(tensor=spilled(r)), "which is spilled"),
    "a state in a file": (
        lambda r: r["states"][0].update(tensor=spilled(r), initial=-1), "which is spilled"),
    "a file larger than what it holds": (
        lambda r: memory(r).update(size=2**40), "for spilled tensors, more than they take"),
    "a tensor behind the file": (
        lambda r: tensor(r, spilled(r)).update(offset=2**40), "of its place"),
    "spilling to where steps compute": (
        lambda r: memory(r).update(spilled=False),
        "it spills to a memory that is not for spilled tensors"),
    "spilling a constant": (
        lambda r: first(r, "Spill").update(inputs=[constant(r)]), "in type or shape"),
    "fetching into another shape": (
        lambda r: tensor(r, spilled(r)).update(shape=[1]), "its operands differ in type or shape"),
    "fetching what was never spilled": (
        lambda r: first(r, "Fetch").update(inputs=[first(r, "Spill")["inputs"][0]]),
        "no record that is live"),
    "a wait that computes": (
        lambda r: first(r, "Wait").update(inputs=list(computing(r)["inputs"])),
        "it must have no operands"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_program_that_lies_about_moves_is_refused(moving, name):
    edit, reason = LIES[name]
    data = edited(moving, edit)
    with pytest.raises(ProgramError) as caught:
        load(data)
    assert reason in str(caught.value)


@pytest.fixture(scope="module")
def packing(tmp_path_factory):
    """The parts of a valid program that packs a mask to bits."""
    lowered = lower_model(masked_step_file(tmp_path_factory.mktemp("step")))
    return assembled(lowered, traded(lowered, find_policy("gist"), LEAST))


def lie(root, kind, operand, changes):
    """Let a step that packs or unpacks read or write a tensor that is not what it is."""
    steps = [root["steps"][number] for number in numbers(root, kind)]
    step = max(steps, key=lambda each: math.prod(tensor(root, each["inputs"][0])["shape"]))
    root["tensors"].append(tensor(root, step[operand][0]) | changes)
    step[operand] = [len(root["tensors"]) - 1]


PACKING_LIES = {
    "too few bytes": ("bits", {"shape": [1]}, "it needs a byte for 8 booleans"),
    "too few booleans": ("booleans", {"shape": [8]}, "it needs a byte for 8 booleans"),
    "no booleans": ("booleans", {"type": "uint8"}, "it packs booleans to bytes"),
    "no bytes": ("bits", {"type": "int8"}, "it packs booleans to bytes"),
}


@pytest.mark.parametrize("kind", ["PackBits", "UnpackBits"])
@pytest.mark.parametrize("name", PACKING_LIES)
def test_a_program_that_lies_about_bits_is_refused(packing, kind, name):
    what, changes, reason = PACKING_LIES[name]
    operand = "inputs" if (what == "bits") == (kind == "UnpackBits") else "outputs"
    data = edited(packing, lambda root: lie(root, kind, operand, changes))
    with pytest.raises(ProgramError) as caught:
        load(data)
    assert reason in str(caught.value)


def test_the_program_itself_runs(moving, packing):
    load(edited(packing, lambda root: None))

    load(edited(moving, lambda root: None))


def test_random_damage_is_refused_or_harmless(tmp_path):
    lowered = lower_model(save(tmp_path, with_random_weights(parse(CARRIED))))
    found = traded(lowered, find_policy("offload-prefetch"), LEAST)
    valid = file_of(assembled(lowered, found))
    generator = random.Random(1)
    outcomes = Counter()
    for _ in range(600):
        try:
            load(flipped(valid, generator))
            outcomes["ran"] += 1
        except (ProgramError, ResourceError):
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 30

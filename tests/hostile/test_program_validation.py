"""Program files that lie about memory: where things are, who may write there, what is behind."""

import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from arenite.pipeline.targets.compiling import compile_model
from arenite.runtime import ProgramError, Session
from support.coded_programs import build_coded, network
from support.edited_programs import apart, edited, edited_file, split_memories
from support.hostile_models import ONNX_TEXTS
from support.running import MANY_KINDS
from support.tflite_operator import Given, operator_model, weights
from support.tiny_onnx import parse, save, with_random_weights
from support.tiny_programs import accumulator, classifier


@pytest.fixture(scope="module")
def assembly(tmp_path_factory):
    """A program with many kinds of steps, each record at bytes of its own."""
    folder = tmp_path_factory.mktemp("model")
    return apart(save(folder, with_random_weights(parse(MANY_KINDS))))


def load(data):
    """Load and run a file's bytes."""
    with Session.of_pieces([data], "hostile") as session:
        session.invoke()


def scratch(root, **changes):
    """Give the first step working memory of its own, with what is wrong about it."""
    (memory,) = root["memories"]
    entry = {"name": "scratch", "type": "uint8", "shape": [64], "place": "memory"}
    entry |= {"offset": memory["size"]} | changes
    root["steps"][0]["scratch"] = len(root["tensors"])
    root["tensors"].append(entry)
    root["records"].append(
        {"name": "scratch", "offset": memory["size"], "size": 64, "start": 0, "end": 1}
    )
    memory["size"] += 64


def memories(*names, size=1 << 20, alignment=64):
    return [{"name": name, "size": size, "alignment": alignment} for name in names]


def first_tensor(root):
    return next(each for each in root["tensors"] if each["place"] == "memory")


def split(change):
    """Return an edit of a program with two memories."""

    def edit(root):
        split_memories(root)
        change(root)

    return edit


EDITS = {
    "no memory": (lambda r: r.update(memories=[]), "1 to 16 memories, not 0"),
    "17 memories": (
        lambda r: r.update(memories=memories(*map(str, range(17)))), "1 to 16 memories, not 17"
    ),
    "a memory twice": (lambda r: r.update(memories=memories("a", "a")), "'a' has a duplicate"),
    "no alignment": (lambda r: r.update(memories=memories("a", alignment=0)), "a power of two"),
    "an odd alignment": (
        lambda r: r.update(memories=memories("a", alignment=96)), "expected a power of two"
    ),
    "an alignment beyond a page": (
        lambda r: r.update(memories=memories("a", alignment=8192)), "a power of two up to 4096"
    ),
    "memories beyond the machine": (
        lambda r: r.update(memories=memories("a", "b", "c", size=1 << 45)), "beyond this machine"
    ),
    "a tensor in no memory": (lambda r: first_tensor(r).update(memory=7), "in memory 7 of 1"),
    "a record in no memory": (
        lambda r: r["records"][0].update(memory=7), "record .* in memory 7 of 1"
    ),
    "a tensor in another memory than its record": (
        split(lambda r: first_tensor(r).update(memory=1 - first_tensor(r)["memory"])),
        "lies in no record that is live",
    ),
    "a memory that is too small for its record": (
        split(lambda r: r["memories"][1].update(size=64)), "outside the 64 B of",
    ),
    "working memory that is not there": (
        lambda r: r["steps"][0].update(scratch=99999), "working memory is tensor 99999"
    ),
    "working memory below none": (
        lambda r: r["steps"][0].update(scratch=-2), "working memory is tensor -2"
    ),
    "working memory of numbers": (
        lambda r: scratch(r, type="float32", shape=[16]), "constant or not uint8"
    ),
    "working memory among the weights": (
        lambda r: scratch(r, place="weights", offset=0), "has working memory that is a constant"
    ),
    "working memory that is not live": (
        lambda r: (scratch(r), r["records"][-1].update(start=1, end=2)), "no record that is live"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_a_program_that_lies_about_memory_is_refused(assembly, name):
    edit, reason = EDITS[name]
    with pytest.raises(ProgramError, match=reason):
        load(edited(assembly, edit))


def test_working_memory_of_a_step_is_accepted(assembly):
    load(edited(assembly, scratch))


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_a_file_of_an_old_version_is_refused(assembly, version):
    data = bytearray(edited(assembly, lambda root: None))
    struct.pack_into("<I", data, 8, version)
    with pytest.raises(ProgramError, match=f"of version {version}; this runtime reads version 6"):
        load(bytes(data))


def test_constants_that_end_the_file_are_refused(assembly):
    (last, array) = assembly.constants[-1]
    for spare in (0, 127):
        size = last + array.nbytes + spare
        cut = replace(assembly, weights_size=size)
        data = edited(cut, lambda root, size=size: root.update(weights_size=size))
        with pytest.raises(ProgramError, match=f"outside the {size - 128} B of its place"):
            load(data)


def test_weights_without_the_bytes_behind_them_are_refused(tmp_path):
    data = accumulator(tmp_path).read_bytes()
    (start,) = struct.unpack_from("<Q", data, 24)
    path = tmp_path / "short.arena"
    path.write_bytes(data[: start + 64])

    def edit(root):
        root["weights_size"] = 64
        del root["states"][0]["initial"]

    with pytest.raises(ProgramError, match="without the 128 B behind the last"):
        load(edited_file(path, edit))


SHORT_OF_MEMORY = """
import resource, sys
from arenite.runtime.errors import ResourceError
from arenite.runtime import Session
resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
try:
    Session(sys.argv[1])
except ResourceError as error:
    print(error)
"""


def test_an_arena_that_does_not_fit_memory_is_an_error_of_its_own(assembly, tmp_path):
    path = tmp_path / "large.arena"
    path.write_bytes(edited(assembly, lambda root: root["memories"][0].update(size=1 << 40)))
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY, path], capture_output=True, text=True, check=True
    )
    assert "out of memory for an arena of 1099511627776 B" in done.stdout


def test_a_state_that_does_not_live_throughout_is_refused(tmp_path):
    path = accumulator(tmp_path)

    def edit(root):
        offset = root["tensors"][root["states"][0]["tensor"]]["offset"]
        record = next(each for each in root["records"] if each["offset"] == offset)
        record["end"] -= 1

    with pytest.raises(ProgramError, match="no record that is live throughout"):
        load(edited_file(path, edit))


def test_a_step_that_updates_what_is_not_a_state_is_refused(tmp_path):
    path = tmp_path / "svdf.tflite"
    numbers = np.ones((4, 6), np.float32)
    path.write_bytes(
        operator_model(
            "SVDF",
            [Given((1, 6)), weights(numbers), weights(numbers), None,
             Given((1, 24), is_variable=True)],
            [Given((1, 4))],
            ("SVDFOptions", {"rank": 1}),
        )
    )  # fmt: skip
    compiled = compile_model(path)
    assembly = apart(compiled)
    load(edited(assembly, lambda root: None))
    with pytest.raises(ProgramError, match="which is not a state"):
        load(edited(assembly, lambda root: root.update(states=[])))


def test_scales_that_are_not_those_of_the_output_channels_are_refused(tmp_path):
    path = classifier(tmp_path, quantised=True)

    def edit(root):
        step = next(each for each in root["steps"] if each["kernel_type"] == "Conv2D")
        root["tensors"][step["inputs"][4]].update(shape=[15])

    with pytest.raises(ProgramError, match="its scales are not one for each output channel"):
        load(edited_file(path, edit))


def _of_sums(change):
    """Return a change of the step that makes floats of integers."""

    def edit(root):
        step = next(each for each in root["steps"] if each["kernel_type"] == "FullyConnected")
        change(root, step)

    return edit


SUMS = {
    "scales of another number": (
        lambda root, step: root["tensors"][step["inputs"][4]].update(shape=[4]), "does not fit",
    ),
    "no scales": (
        lambda root, step: step["inputs"].__setitem__(4, -1), "floats need scales of their sums",
    ),
    "a zero point of another type": (
        lambda root, step: step["inputs"].__setitem__(6, step["inputs"][5]), "does not fit",
    ),
    "a scale of another number": (
        lambda root, step: step["inputs"].__setitem__(5, step["inputs"][4]), "does not fit",
    ),
    "a filter of another size": (
        lambda root, step: root["tensors"][step["inputs"][1]].update(shape=[1, 2, 64]),
        "its packed filter does not fit",
    ),
    "an addend": (
        lambda root, step: step["inputs"].__setitem__(3, step["outputs"][0]), "its addend must be",
    ),
    "integers with scales": (
        lambda root, step: root["tensors"][step["outputs"][0]].update(type="int32"),
        "integers have neither scales nor bias",
    ),
    "inputs without end": (
        lambda root, step: step["inputs"].extend([-1] * 9), "too few or too many inputs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_integers_whose_operands_do_not_fit_are_refused(name, tmp_path):
    path = save(tmp_path, parse(ONNX_TEXTS["quantised in the run"]))
    change, message = SUMS[name]
    with pytest.raises(ProgramError, match=message):
        load(edited(apart(path), _of_sums(change)))


DYNAMIC_LSTM = """(float[3,1,4] x, float[1,1,5] h, float[1,1,5] c) => (y)
<int8[1,4,20] w, int8[1,5,20] r, float[1,40] b, int8[1] z = {0}, float[1] s = {0.1}>
{y = com.microsoft.DynamicQuantizeLSTM<hidden_size=5>(x, w, r, b, , h, c, , s, z, s, z)}"""
OPERANDS_OF_DYNAMIC_LSTM = {
    "weights": (1, "the wrong size"), "recurrent weights": (2, "the wrong size"),
    "bias": (3, "the wrong size"), "state": (4, "the wrong size"), "scale": (6, "the wrong size"),
    "zero point": (7, "unsupported type"), "scales": (8, "the wrong size"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERANDS_OF_DYNAMIC_LSTM)
def test_a_dynamically_quantised_lstm_whose_operands_do_not_fit_is_refused(name, tmp_path):
    path = save(tmp_path, with_random_weights(parse(DYNAMIC_LSTM, microsoft=True)))
    position, message = OPERANDS_OF_DYNAMIC_LSTM[name]
    others = {1: 2, 2: 1, 7: 6, 8: 4}

    def edit(root):
        step = next(each for each in root["steps"] if each["kernel_type"] == "DynamicLstm")
        step["inputs"][position] = step["inputs"][others.get(position, 3 if position > 3 else 4)]

    with pytest.raises(ProgramError, match=message):
        load(edited(apart(path), edit))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A program with a step that ONNX Runtime runs."""
    folder = tmp_path_factory.mktemp("foreign")
    return apart(
        save(folder, parse("(float[8,10] x) => (y) {y = MeanVarianceNormalization<axes=[1]>(x)}"))
    )


def external(root):
    return next(each for each in root["steps"] if each["kernel_type"] == "External")


FOREIGN = {
    "another runtime": (lambda s: s["kernel"].update(runtime="tensorflow"), "unknown runtime"),
    "an input left out": (lambda s: s.update(inputs=[-1]), "input is tensor -1"),
    "a name too few": (lambda s: s["kernel"].update(input_names=[]), "does not name all"),
    "a name that its model lacks": (
        lambda s: s["kernel"].update(input_names=["z"]), "ONNX Runtime|onnxruntime",
    ),
    "a model that is no constant": (
        lambda s: s["kernel"].update(model=s["inputs"][0]), "its model is not a constant",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_step_of_another_runtime_that_lies_is_refused(foreign, name):
    edit, reason = FOREIGN[name]
    load(edited(foreign, lambda root: None))
    with pytest.raises(ProgramError, match=reason):
        load(edited(foreign, lambda root: edit(external(root))))


def test_a_damaged_model_of_another_runtime_is_refused(foreign):
    damaged = tuple((offset, np.zeros_like(array)) for offset, array in foreign.constants)
    with pytest.raises(ProgramError, match="rejected by onnxruntime"):
        load(edited(replace(foreign, constants=damaged), lambda root: None))


def test_times_of_turns_that_are_not_there_are_refused(assembly):
    with Session.of_pieces([edited(assembly, lambda root: None)], "valid") as session:
        for turn in (session._native.num_turns, 1 << 40):
            with pytest.raises(IndexError, match="turn index out of range"):
                session._native.note_nanoseconds(turn, 1)


def test_the_bytes_of_a_coded_constant_are_not_shown_as_numbers(tmp_path):
    file, _ = build_coded(network(tmp_path, num_values=32), tmp_path)
    found = []
    edited_file(file, lambda root: found.extend(root["tensors"]))
    (coded, *_) = (i for i, each in enumerate(found) if each.get("coded_size", 0))
    with Session(file) as session, pytest.raises(ValueError, match="coded constant"):
        session._native.view(coded)

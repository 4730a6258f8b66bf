"""Hostile `.arena` files: each is refused with a reason, or runs; nothing else happens."""

import json
import struct
import subprocess
import sys
from dataclasses import replace

import pytest

from arenite.runtime.compiler import compile_model
from arenite.runtime.errors import ProgramError
from arenite.runtime.program import file as program_file
from arenite.runtime.session import Session
from arenite.strategies import find
from support.running import MANY_KINDS, with_random_weights
from support.tiny_onnx import parse, save


@pytest.fixture(scope="module")
def assembly(tmp_path_factory):
    """The parts of a valid program with many kinds of steps."""
    folder = tmp_path_factory.mktemp("model")
    compiled = compile_model(save(folder, with_random_weights(parse(MANY_KINDS))))
    return compiled.assemble(find("best")(compiled.source.problem))


@pytest.fixture(scope="module")
def valid(assembly):
    """Its bytes."""
    return b"".join(program_file.pieces(assembly))


def load(data):
    """Load and run a file's bytes."""
    with Session.of_pieces([data], "hostile") as session:
        session.invoke()


def test_the_valid_file_runs(valid):
    load(valid)


def test_a_truncated_file_is_refused(valid):
    program_size, weights_offset = struct.unpack_from("<QQ", valid, 16)
    for length in (1, 31, 32, 40, program_size, weights_offset, len(valid) - 1):
        with pytest.raises(ProgramError, match=r"truncated|damaged|at least|expects"):
            load(valid[:length])


@pytest.mark.parametrize(
    ("position", "form", "value", "reason"),
    [
        (0, "<B", 0x42, "not a program file"),
        (8, "<I", 99, "version 99"),
        (16, "<Q", 1 << 60, "truncated or damaged"),
        (16, "<Q", 0, "damaged"),
        (24, "<Q", 4097, "truncated or damaged"),
        (24, "<Q", 1 << 60, "truncated or damaged"),
        (36, "<I", 0, "damaged"),
    ],
)
def test_a_head_that_lies_is_refused(valid, position, form, value, reason):
    data = bytearray(valid)
    struct.pack_into(form, data, position, value)
    with pytest.raises(ProgramError, match=reason):
        load(bytes(data))


def edited(assembly, edit):
    """The bytes of the program after `edit` changed its JSON."""
    root = json.loads(assembly.program)
    edit(root)
    return b"".join(program_file.pieces(replace(assembly, program=json.dumps(root))))


def step(root, kind):
    """The first step of a kind."""
    return next(each for each in root["steps"] if each["kernel_type"] == kind)


EDITS = {
    "an arena beyond measure": lambda r: r.update(arena_size=2**62),
    "a smaller arena": lambda r: r.update(arena_size=64),
    "other weights": lambda r: r.update(weights_size=1),
    "a tensor behind the arena": lambda r: r["tensors"][0].update(offset=2**40),
    "a tensor between elements": lambda r: r["tensors"][0].update(offset=2),
    "a tensor beyond measure": lambda r: r["tensors"][0].update(shape=[2**40, 2**40]),
    "a tensor of many axes": lambda r: r["tensors"][0].update(shape=[1] * 40),
    "a scale of zero": lambda r: r["tensors"][0].update(scales=[0.0]),
    "many scales": lambda r: r["tensors"][0].update(scales=[1.0, 2.0], axis=3),
    "an input that is not there": lambda r: r["steps"][0].update(inputs=[99999, 1, -1]),
    "an output that is not there": lambda r: r["steps"][0].update(outputs=[-1]),
    "an output among the weights": lambda r: r["steps"][0].update(
        outputs=[next(i for i, t in enumerate(r["tensors"]) if t["place"] == "weights")]
    ),
    "no inputs": lambda r: r["steps"][0].update(inputs=[]),
    "no outputs": lambda r: r["steps"][0].update(outputs=[]),
    "a port without its tensor": lambda r: r["inputs"][0].update(tensor=4000),
    "a port of another shape": lambda r: r["inputs"][0].update(shape=[1, 3, 16, 15]),
    "a permutation with a repeat": lambda r: r["inputs"][0].update(permutation=[0, 1, 1, 3]),
    "a port twice": lambda r: r["inputs"].append(r["inputs"][0]),
    "a record that ends first": lambda r: r["records"][0].update(start=3, end=3),
    "a record without bytes": lambda r: r["records"][0].update(size=0),
    "a record that dies early": lambda r: r["records"][0].update(end=1, start=0, size=64),
    "records on each other": lambda r: [each.update(offset=0) for each in r["records"]],
    "groups of none": lambda r: step(r, "Conv2D")["kernel"].update(groups=0),
    "strides of none": lambda r: step(r, "Conv2D")["kernel"].update(strides=[0, 0]),
    "padding beyond measure": lambda r: step(r, "Conv2D")["kernel"].update(padding=[2**31] * 4),
    "padding that does not fit": lambda r: step(r, "Conv2D")["kernel"].update(
        padding=[0, 0, 0, 0]
    ),
    "a pool of other windows": lambda r: step(r, "Pool2D")["kernel"].update(window=[5, 5]),
    "a list too short": lambda r: step(r, "Pool2D")["kernel"].update(window=[2]),
    "a move that leads outside": lambda r: step(r, "Copy")["kernel"]["moves"][0].update(
        output_start=10**6
    ),
    "a move that leads before": lambda r: step(r, "Copy")["kernel"]["moves"][0].update(
        input_strides=[-1] * len(step(r, "Copy")["kernel"]["moves"][0]["shape"])
    ),
    "a move that overflows": lambda r: step(r, "Copy")["kernel"]["moves"][0].update(
        shape=[2**63] * len(step(r, "Copy")["kernel"]["moves"][0]["shape"])
    ),
    "a move of another operand": lambda r: step(r, "Copy")["kernel"]["moves"][0].update(input=7),
    "a fill of two elements": lambda r: step(r, "Copy")["kernel"].update(fill=[0] * 8),
    "a table that leads outside": lambda r: step(r, "Resize2D")["kernel"].update(
        row_low=[99] * len(step(r, "Resize2D")["kernel"]["row_low"])
    ),
    "a table too short": lambda r: step(r, "Resize2D")["kernel"].update(row_low=[0]),
    "axes beyond the rank": lambda r: step(r, "Reduce")["kernel"].update(axes=[9]),
    "an axis twice": lambda r: step(r, "Reduce")["kernel"].update(axes=[1, 1]),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_program_that_lies_is_refused(assembly, name):
    try:
        data = edited(assembly, EDITS[name])
    except ValueError:
        return  # the schema itself has no room for it
    with pytest.raises(ProgramError):
        load(data)


FLIP = """
import random, struct, sys
from arenite.runtime.errors import ProgramError
from arenite.runtime.session import Session
valid = open(sys.argv[1], "rb").read()
(size,) = struct.unpack_from("<Q", valid, 16)
generator = random.Random(int(sys.argv[2]))
outcomes = {"ran": 0, "refused": 0}
for _ in range(int(sys.argv[3])):
    data = bytearray(valid)
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        if generator.random() < 0.5:
            data[generator.randrange(32 + size)] ^= 1 << generator.randrange(8)
        else:
            place = 32 + 4 * generator.randrange(size // 4)
            value = generator.choice((-1, 0, 1, 2**31 - 1, -(2**31), 2**20, 4, 16))
            struct.pack_into("<i", data, place, value)
    try:
        with Session.of_pieces([bytes(data)], "flipped") as session:
            if session.arena_bytes < 2**28:
                session.invoke()
        outcomes["ran"] += 1
    except ProgramError:
        outcomes["refused"] += 1
print(outcomes["ran"], outcomes["refused"])
"""


def test_random_damage_is_refused_or_harmless(valid, tmp_path):
    path = tmp_path / "valid.arena"
    path.write_bytes(valid)
    process = subprocess.run(
        [sys.executable, "-c", FLIP, path, "1", "600"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    ran, refused = map(int, process.stdout.split())
    assert ran + refused == 600
    assert refused > 300

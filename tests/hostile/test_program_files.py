"""Hostile `.arena` files: each is refused with a reason, or runs; nothing else happens."""

import struct
import subprocess
import sys

import pytest

from arenite.runtime import ProgramError
from support.edited_programs import load


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


FLIP = """
import random, sys
from arenite.runtime.errors import ProgramError, ResourceError
from arenite.runtime import Session
from support.edited_programs import flipped
valid = open(sys.argv[1], "rb").read()
generator = random.Random(int(sys.argv[2]))
outcomes = {"ran": 0, "refused": 0}
for _ in range(int(sys.argv[3])):
    try:
        with Session.of_pieces([flipped(valid, generator)], "flipped") as session:
            if session.arena_bytes < 2**28:
                session.invoke()
        outcomes["ran"] += 1
    except (ProgramError, ResourceError):  # an arena of terabytes is one of the latter
        outcomes["refused"] += 1
print(outcomes["ran"], outcomes["refused"])
"""


def test_random_damage_is_refused_or_harmless(valid, tmp_path):
    path = tmp_path / "valid.arena"
    path.write_bytes(valid)
    process = subprocess.run(
        [sys.executable, "-c", FLIP, path, "1", "600"],
        env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    ran, refused = map(int, process.stdout.split())
    assert ran + refused == 600
    assert refused > 300

"""Damage in a program file is found by its checksums, wherever it is."""

import random
import struct

import pytest

from arenite.runtime import ProgramError, Session
from support.c_library import environment, install, run
from support.command import main
from support.running import MANY_KINDS, build, random_feeds
from support.tiny_onnx import parse, save, with_random_weights


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return build(save(folder, with_random_weights(parse(MANY_KINDS))), folder)


def parts(data: bytes) -> dict[str, range]:
    """Return the kinds of bytes: head, program, padding behind it, weights and slack."""
    size, weights = struct.unpack_from("<QQ", data, 16)
    end = len(data) - 128
    return {
        "head": range(32), "program": range(32, 32 + size), "padding": range(32 + size, weights),
        "weights": range(weights, end), "slack": range(end, len(data)),
    }  # fmt: skip


@pytest.mark.parametrize("part", ["head", "program", "padding", "weights", "slack"])
def test_each_of_sixty_flipped_bits_is_found(program, part, tmp_path):
    whole = program.read_bytes()
    path = tmp_path / "flipped.arena"
    draw = random.Random(part)
    for _ in range(60):
        data = bytearray(whole)
        data[draw.choice(parts(whole)[part])] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        with pytest.raises(ProgramError):
            Session(path, check=True)
        with pytest.raises(ProgramError):
            Session(path, check=True, copy=True)


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_a_whole_file_is_accepted(program):
    with Session(program, check=True) as checked, Session(program) as plain:
        feeds = random_feeds(plain)
        expected, found = plain.run(feeds), checked.run(feeds)
    assert {n: a.tobytes() for n, a in found.items()} == {
        n: a.tobytes() for n, a in expected.items()
    }


def test_damaged_weights_are_noticed_only_on_request(program, tmp_path):
    path = tmp_path / "damaged.arena"
    path.write_bytes(program.read_bytes())
    flip(path, parts(path.read_bytes())["weights"][1000])
    Session(path).close()
    with pytest.raises(ProgramError, match="the weights are damaged: the bytes do not have"):
        Session(path, check=True)


def test_verify_refuses_damaged_weights(program, tmp_path, capsys):
    path = tmp_path / "damaged.arena"
    path.write_bytes(program.read_bytes())
    assert main(["verify", str(path)]) == 0
    flip(path, parts(path.read_bytes())["weights"][1000])
    assert main(["verify", str(path)]) == 1
    assert "the weights are damaged" in capsys.readouterr().err


def test_the_c_library_checks_on_request(program, tmp_path):
    path = tmp_path / "damaged.arena"
    path.write_bytes(program.read_bytes())
    prefix = install()
    command = [prefix / "bin/arenite-run", path, "--check"]
    assert "time " in run(command, env=environment(prefix)).stdout
    flip(path, parts(path.read_bytes())["weights"][1000])
    assert "time " in run(command[:-1], env=environment(prefix)).stdout
    with pytest.raises(AssertionError, match="the weights are damaged"):
        run(command, env=environment(prefix))

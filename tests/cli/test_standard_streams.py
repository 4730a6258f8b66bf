"""Results on standard output, and standard streams that are closed."""

import json
import subprocess
import sys

import pytest

from arenite.runtime import Session
from support.tiny_onnx import parse, save, with_random_weights

NETWORK = "(float[1,3,16,16] x) => (y) <float[8,3,3,3] w> {y = Conv(x, w)}"


@pytest.fixture
def model(tmp_path):
    return save(tmp_path, with_random_weights(parse(NETWORK)))


def arenite(*arguments, before="", **options):
    """Run the command in a shell that closes streams as `before` says."""
    command = ["sh", "-c", f'exec "$@" {before}', "sh", sys.executable, "-m", "arenite"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, check=False, **options
    )


def test_a_plan_goes_to_standard_output_and_what_people_read_beside_it(model):
    ended = arenite("plan", model, "-o", "-")
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["format"] == "arenite-plan"
    assert b"height" in ended.stderr


def test_a_program_goes_to_standard_output_whole(model, tmp_path):
    ended = arenite("build", model, "-o", "-", cwd=tmp_path)
    assert ended.returncode == 0
    program = tmp_path / "piped.arena"
    program.write_bytes(ended.stdout)
    with Session(program) as session:
        assert [port.name for port in session.inputs] == ["x"]
    assert not (tmp_path / "-").exists()


def test_the_tables_of_a_comparison_make_room_for_its_csv(model):
    ended = arenite("compare", model, "--csv", "-", "--strategy", "greedy-by-size")
    assert ended.returncode == 0
    assert b"greedy-by-size" in ended.stdout.splitlines()[1]
    assert b"," in ended.stdout.splitlines()[0]


def test_standard_output_takes_one_thing(model, misused):
    assert "cannot have a file and --json" in misused("plan", model, "-o", "-", "--json")
    assert "two outputs" in misused("compare", model, "--csv", "-", "-o", "-")


@pytest.mark.parametrize("words", [("strategies",), ("--version",), ("plan", "no.onnx")])
def test_a_closed_standard_output_is_one_line(words):
    ended = arenite(*words, before=">&-")
    assert (ended.returncode, ended.stderr) == (1, b"error: standard output is closed\n")


@pytest.mark.parametrize("closed", ["<&-", "2>&-"])
def test_other_closed_streams_change_nothing(closed, model, tmp_path):
    program = tmp_path / "o.arena"
    ended = arenite("build", model, "-o", program, before=closed)
    assert ended.returncode == 0
    with Session(program):
        pass


def test_nothing_is_said_where_all_is_closed():
    assert arenite("strategies", before=">&- 2>&-").returncode == 1

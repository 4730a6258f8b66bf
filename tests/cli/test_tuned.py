"""`arenite run` and `inspect` of a program that was tuned, here or on another processor."""

import pytest

from arenite.pipeline.targets.compiling import Tuning, compile_model
from arenite.runtime import processor_name
from arenite.runtime.program import write_assembly
from arenite.runtime.rewrites import measured
from arenite.strategies import find

ANOTHER = "[bold]A processor that nobody has"


@pytest.fixture
def program(tmp_path):
    """Where a program file goes."""
    return tmp_path / "program.arena"


@pytest.fixture
def tuned(classifier, tmp_path):
    """Write the classifier, tuned on a processor, and return the file."""

    def tuned(processor):
        compiled = compile_model(classifier, tune=lambda _: Tuning(processor, measured({})))
        path = tmp_path / "tuned.arena"
        plan = find("best")(compiled.source.problem)
        write_assembly(path, compiled.assemble(plan), lambda _: None)
        return path

    return tuned


@pytest.mark.parametrize("command", ["run", "inspect"])
def test_a_tuned_program_says_whether_its_kernels_were_taken(run, run_json, tuned, image, command):
    feeds = ("--input", image) if command == "run" else ()
    for processor, is_here, words in (
        (processor_name(), True, ", this one"),
        (ANOTHER, False, ", not this one; the kernels come from the built-in table"),
    ):
        path = tuned(processor)
        found = run_json(command, path, *feeds)
        assert found["tuned"] == {"processor": processor, "taken": is_here}
        (row,) = (
            line for line in run(command, path, *feeds)[1].splitlines() if "tuned on" in line
        )
        assert row.split("  ", 1)[1].strip() == f"{processor}{words}"


def test_a_program_file_is_inspected(run, run_json, classifier, image, program):
    assert run("build", classifier, "-o", program)[0] == 0
    found = run_json("inspect", program)
    assert found["tuned"] is None
    ran = run_json("run", program, "--input", image)
    assert (found["backends"], found["height"]) == (ran["backends"], ran["arena_bytes"])
    assert found["num_steps"] == sum(found["backends"].values())
    assert found["inputs"] == {"x": {"dtype": "float32", "shape": [1, 3, 8, 8]}}
    assert found["held"]["total"] > found["height"]
    said = run("inspect", program)[1]
    assert "tuned on" not in said
    assert "float32 1x3x8x8" in said


def test_a_program_file_decides_what_options_of_models_would(run, refused, program):
    program.write_bytes(b"nothing of the kind")
    assert str(program) in refused("inspect", program)
    code, _, err = run("inspect", program, "--order", "given")
    assert code == 2
    assert "the .arena file decides --order;" in err

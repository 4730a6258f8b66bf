"""Plan files of programs in bands: what is written is read, and what is wrong is refused."""

import json
from pathlib import Path

import jsonschema
import pytest

from arenite.planner import planfile
from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import Problem, UsageRecord
from arenite.planner.placement.verification import OverlapError
from arenite.planner.planfile import Bands, ModelReference, PlanFile
from arenite.planner.planfile import bands as file_of_bands
from arenite.planner.planfile.bands import RegionOf, StripsOf
from arenite.planner.planfile.errors import (
    DuplicateNameError,
    InconsistentError,
    MissingFieldError,
    OutOfRangeError,
    StaleRecordsError,
    UnknownFieldError,
    UnknownMemoryError,
    WrongTypeError,
)
from arenite.planner.programs.rules import Boundary
from arenite.planner.programs.run import PlacedRows, Rows, Run, TouchingTurn
from arenite.planner.programs.run_verification import (
    OverwrittenRowsError,
    UnheldRowsError,
    UnwrittenRowsError,
)

SCHEMA = Path(__file__).parents[2] / "docs" / "plan-file.schema.json"


def turn(step, row, reads, writes):
    return TouchingTurn(step, row, 1, (Rows(*reads),), (Rows(*writes),))


RUN = Run(
    (
        PlacedRows("image", "arena", 16, (0, 16, 32)),
        PlacedRows("features", "arena", 16, (48, 64, 48)),
        PlacedRows("pooled", "arena", 8, (80, 88)),
    ),
    (
        turn("conv", 0, ("image", 0, 2), ("features", 0, 1)),
        turn("conv", 1, ("image", 0, 3), ("features", 1, 2)),
        turn("pool", 0, ("features", 0, 2), ("pooled", 0, 1)),
        turn("conv", 2, ("image", 1, 3), ("features", 2, 3)),
        turn("pool", 1, ("features", 1, 3), ("pooled", 1, 2)),
    ),
    ("image",),
    ("pooled",),
)
PROBLEM = Problem.of(
    (
        UsageRecord("image", 48, 0, 4, 8, ("image",)),
        UsageRecord("features/rows 0", 16, 0, 3, 8, ("features/rows 0",)),
        UsageRecord("features/rows 1", 16, 1, 5, 8, ("features/rows 1",)),
        UsageRecord("features/rows 2", 16, 3, 5, 8, ("features/rows 2",)),
        UsageRecord("pooled", 16, 2, 5, 8, ("pooled",)),
    ),
    ("conv/rows 0", "conv/rows 1", "pool/rows 0", "conv/rows 2", "pool/rows 1"),
)
BANDS = Bands(("conv", "pool"), (), (RegionOf("conv", "pool", 1, 1),), RUN)
PLAN_FILE = PlanFile(
    ModelReference("tiny.tflite", "55" * 32),
    "arenite",
    Boundary.INCLUDE,
    8,
    (),
    PROBLEM,
    Plan.of(PROBLEM, (0, 48, 64, 48, 80), "by-hand"),
    BANDS,
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "plan.json"
    planfile.write(path, PLAN_FILE)
    return path


def test_what_is_written_reads_as_the_same_and_gives_the_same_bytes(path):
    found = planfile.read(path)
    assert found == PLAN_FILE
    assert found.to_bytes() == path.read_bytes()


def test_strips_and_a_second_memory_are_kept(path):
    document = json.loads(path.read_text())
    document["bands"]["strips"] = [{"first": "conv", "last": "pool", "columns": 8}]
    document["bands"]["regions"] = []
    document["bands"]["tensors"][0]["memory"] = "arena"
    path.write_text(json.dumps(document))
    assert planfile.read(path).bands.strips == (StripsOf("conv", "pool", 8),)
    assert planfile.read(path).bands.run == RUN


def test_the_file_conforms_to_the_schema_in_the_documentation(path):
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    document = json.loads(path.read_text())
    validator.validate(document)
    bands = document["bands"]
    for name in bands:
        without = {key: value for key, value in bands.items() if key != name}
        assert not validator.is_valid(document | {"bands": without}), name


def edit(*keys, to):
    """Return an edit of a document that puts a value somewhere in its bands."""

    def put(document):
        place = document["bands"]
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return put


def drop(document):
    del document["bands"]["regions"]


def repeat_tensor(document):
    document["bands"]["tensors"].append(document["bands"]["tensors"][0])


def overlapping_regions(document):
    document["bands"]["regions"] *= 2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (drop, MissingFieldError, "bands has no 'regions'"),
        (edit("colour", to=1), UnknownFieldError, "bands has an unknown field 'colour'"),
        (edit("order", to=["conv", "conv"]), DuplicateNameError, "order of bands names a step"),
        (edit("order", to=["conv"]), InconsistentError, "step 'pool' is not in the order"),
        (edit("order", to=["pool", "conv"]), InconsistentError, "step 'conv' is behind 'pool'"),
        (overlapping_regions, InconsistentError, "begins before that of 'conv' ends"),
        (edit("regions", 0, "rows", to=0), OutOfRangeError, "rows is 0"),
        (edit("regions", 0, "inner_rows", to=1 << 40), OutOfRangeError, "bands of 1099511627776"),
        (edit("regions", 0, "columns", to=0), OutOfRangeError, "columns is 0"),
        (edit("strips", to=[{"first": "conv"}]), MissingFieldError, "strips has no 'last'"),
        (repeat_tensor, DuplicateNameError, "two tensors are named 'image'"),
        (edit("tensors", 1, "memory", to="far"), UnknownMemoryError, "lies in 'far'"),
        (edit("tensors", 1, "row_bytes", to=0), OutOfRangeError, "row_bytes is 0"),
        (edit("tensors", 1, "rows", to=[-1]), OutOfRangeError, "a row is -1"),
        (edit("turns", to=[]), InconsistentError, "0 turns, order has 5"),
        (edit("turns", 0, "reads", to=[[0, 1]]), WrongTypeError, "a list of 3 numbers expected"),
        (edit("turns", 0, "reads", to=[[3, 0, 1]]), OutOfRangeError, "turn 0: tensor 3 of 3"),
        (edit("turns", 0, "reads", to=[[0, 2, 2]]), OutOfRangeError, "rows 2 to 2 of 'image'"),
        (edit("turns", 0, "reads", to=[[0, 0, 4]]), OutOfRangeError, "which has 3"),
        (edit("inputs", to=["input"]), InconsistentError, "'input' is not among the tensors"),
    ],
)
def test_what_is_wrong_has_its_error(path, change, error, words):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(error, match=words.replace("(", r"\(")):
        planfile.read(path)


def test_more_rows_than_can_be_checked_in_time_are_refused(path, monkeypatch):
    monkeypatch.setattr(file_of_bands, "_MOST_ROWS", 15)
    with pytest.raises(OutOfRangeError, match="the turns touch 16 rows, expected at most 15"):
        planfile.read(path)


def swap_turns(document):
    for turns in (document["bands"]["turns"], document["order"]):
        turns[1], turns[2] = turns[2], turns[1]


def leave_turn_out(document):
    document["bands"]["turns"][1]["writes"] = []


def free_early(document):
    document["records"][1]["end"] = 2


def lay_over_each_other(document):
    document["records"][2]["offset"] = 48
    document["bands"]["tensors"][1]["rows"][1] = 48


def shrink_ring(document):
    """Let one record hold the only row of a ring that needs two."""
    first, second, third = document["records"][1:4]
    document["records"] = [each for each in document["records"] if each not in (second, third)]
    first |= {"end": 5}
    document["bands"]["tensors"][1]["rows"] = [48, 48, 48]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (free_early, UnheldRowsError, "turn 2, 'pool', reads row 0 of 'features'"),
        (lay_over_each_other, OverlapError, "share bytes 48 to 64"),
        (leave_turn_out, UnwrittenRowsError, "turn 2, 'pool', reads row 1 of 'features' before"),
        (swap_turns, UnwrittenRowsError, "turn 1, 'pool', reads row 1 of 'features' before"),
        (shrink_ring, OverwrittenRowsError, "where row 1 of 'features' was written after it"),
    ],
)
def test_each_mutation_of_rows_and_turns_is_noticed(path, change, error, words):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(error, match=words) as caught:
        planfile.read(path)
    assert isinstance(caught.value, InvalidPlanError)


def test_a_plan_without_bands_says_nothing_of_a_program(path):
    document = json.loads(path.read_text())
    del document["bands"]
    path.write_text(json.dumps(document))
    found = planfile.read(path)
    assert found.bands is None
    found.check_run(None)


def test_other_turns_than_the_models_are_stale(path, monkeypatch):
    from arenite.planner.planfile import contents

    one_less = Run(RUN.tensors, RUN.turns[1:], RUN.inputs, RUN.outputs)
    monkeypatch.setattr(contents, "run_of", lambda *_: one_less)
    with pytest.raises(StaleRecordsError, match="the turns are not those of the model"):
        planfile.read(path).check_run(None)

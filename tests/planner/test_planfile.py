import json
import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from arenite.planner import planfile
from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.problem import PermittedOverlap, Problem, UsageRecord
from arenite.planner.placement.verification import OverlapError
from arenite.planner.planfile import ModelReference, PlanFile
from arenite.planner.planfile.errors import (
    DuplicateNameError,
    InconsistentError,
    OutOfRangeError,
    StaleRecordsError,
    UnknownMemoryError,
    UnknownVersionError,
    WrongModelError,
    WrongTypeError,
)
from arenite.planner.programs.rules import AliasKind, Boundary
from arenite.planner.tensors import Memory
from support.command import main

DOCS = Path(__file__).parents[2] / "docs"
DIGEST = "ab" * 32

PROBLEM = Problem.of(
    (
        UsageRecord("x", 32, 0, 1, 16, ("x",)),
        UsageRecord("a", 64, 0, 2, 16, ("a", "a/view")),
        UsageRecord("y", 16, 1, 2, 64, ("y",)),
    ),
    ("first", "second"),
    capacity=128,
)
PLAN_FILE = PlanFile(
    ModelReference("tiny.onnx", DIGEST, {"batch": 1}, {"x": (1, 8)}),
    "generic",
    Boundary.INCLUDE,
    16,
    (AliasKind.VIEWS,),
    PROBLEM,
    Plan.of(PROBLEM, (64, 0, 64), "by-hand", {"seed": 7, "quick": True}),
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "plan.json"
    planfile.write(path, PLAN_FILE)
    return path


def test_what_is_written_reads_as_the_same(path):
    assert planfile.read(path) == PLAN_FILE


def test_the_same_plan_gives_the_same_bytes(path):
    assert planfile.read(path).to_bytes() == path.read_bytes()


def test_the_file_conforms_to_the_schema_in_the_documentation(path):
    schema = json.loads((DOCS / "plan-file.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    document = json.loads(path.read_text())
    validator.validate(document)
    for name in document:
        assert not validator.is_valid({k: v for k, v in document.items() if k != name}), name


@pytest.mark.parametrize("path", sorted((DOCS / "examples/plans").iterdir()), ids=lambda p: p.stem)
def test_an_example_in_the_documentation_is_a_plan_file(path):
    assert planfile.read(path).to_bytes() == path.read_bytes()
    assert f'"docs/examples/plans/{path.name}"' in (DOCS / "plan-file.md").read_text()


def test_the_documented_command_gives_the_documented_bytes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "examples/worked-example.csv", tmp_path)
    (command,) = re.findall(r"^arenite (plan .*)$", (DOCS / "plan-file.md").read_text(), re.M)
    assert main(command.split()) == 0, capsys.readouterr().err
    expected = DOCS / "examples/plans/worked-example.json"
    assert Path("plan.json").read_bytes() == expected.read_bytes()


def test_leave_to_overlap_is_kept_and_may_be_taken(tmp_path):
    permitted = (PermittedOverlap("below", 16),)
    problem = Problem(
        (
            UsageRecord("below", 64, 0, 2, 16),
            UsageRecord("over", 32, 1, 2, 16, overlaps=permitted),
        ),
        ("first", "second"),
    )
    plan = Plan.of(problem, (16, 0), "by-hand")
    plan_file = replace(PLAN_FILE, problem=problem, plan=plan)
    path = tmp_path / "plan.json"
    planfile.write(path, plan_file)
    assert planfile.read(path) == plan_file
    text = path.read_text()
    schema = json.loads((DOCS / "plan-file.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    path.write_text(text.replace('{"below": 16}', '{"absent": 16}'))
    with pytest.raises(InconsistentError, match="'absent', one other record expected"):
        planfile.read(path)
    path.write_text(text.replace('{"below": 16}', '{"below": 15}'))
    with pytest.raises(InvalidPlanError, match="share bytes"):
        planfile.read(path)
    with pytest.raises(StaleRecordsError, match="16 B of it over 'below'"):
        plan_file.check_against(
            DIGEST,
            replace(
                problem, records=(problem.records[0], replace(problem.records[1], overlaps=()))
            ),
        )


STAIRS = (Stair(0, 64, 0, 3), Stair(64, 64, 2, 5))
OUTLINED = Problem(
    (UsageRecord("image", 128, 0, 5, 16, outline=STAIRS), UsageRecord("a", 64, 0, 2, 16)),
    tuple("12345"),
)
WITH_OUTLINE = replace(PLAN_FILE, problem=OUTLINED, plan=Plan.of(OUTLINED, (0, 64), "by-hand"))


def test_an_outline_is_kept_and_what_it_leaves_free_may_be_taken(tmp_path):
    path = tmp_path / "plan.json"
    planfile.write(path, WITH_OUTLINE)
    assert planfile.read(path) == WITH_OUTLINE
    document = json.loads(path.read_text())
    assert document["records"][0]["outline"] == [[0, 64, 0, 3], [64, 64, 2, 5]]
    assert (document["height"], document["lower_bound"]) == (128, 128)
    schema = json.loads((DOCS / "plan-file.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)


@pytest.mark.parametrize(
    ("outline", "error", "message"),
    [
        ("[]", OutOfRangeError, "empty outline"),
        ("{}", WrongTypeError, "outline is dict, a list expected"),
        ("[[0, 64, 0]]", WrongTypeError, "a stair of record 0 is list, a list of four"),
        ("[7]", WrongTypeError, "a stair of record 0 is int, a list of four numbers"),
        ('[[0, 64, 0, "3"]]', WrongTypeError, "a stair is str, a whole number expected"),
        ("[[-1, 64, 0, 3]]", OutOfRangeError, "a stair is -1"),
        ("[[0, 0, 0, 3]]", InconsistentError, "a stair of its outline is empty"),
        ("[[0, 64, 3, 3]]", InconsistentError, "a stair of its outline is empty"),
        ("[[65, 64, 0, 3]]", InconsistentError, "is not inside its 128 B"),
        ("[[0, 64, 0, 6]]", InconsistentError, "is not inside its 128 B"),
        ("[[0, 64, 0, 3], [63, 1, 2, 4]]", InconsistentError, "two stairs of its outline share"),
        ("[[0, 64, 0, 3], [64, 64, 1, 5]]", OverlapError, "'image' and 'a' are both live"),
    ],
)
def test_what_a_file_says_of_outlines_is_checked(tmp_path, outline, error, message):
    path = tmp_path / "plan.json"
    text = WITH_OUTLINE.to_bytes().decode()
    path.write_text(text.replace("[[0, 64, 0, 3], [64, 64, 2, 5]]", outline))
    with pytest.raises(error, match=message):
        planfile.read(path)


def test_a_record_of_another_outline_is_stale():
    records = (replace(OUTLINED.records[0], outline=STAIRS[:1]), OUTLINED.records[1])
    with pytest.raises(StaleRecordsError, match=r"outline of 2 stairs here and .* of 1 stairs"):
        WITH_OUTLINE.check_against(DIGEST, replace(OUTLINED, records=records))


def test_a_bound_that_a_search_proved_is_kept_apart_from_the_load(tmp_path):
    loose = replace(PLAN_FILE, plan=replace(PLAN_FILE.plan, offsets=(80, 0, 64), heights=(112,)))
    proved = replace(loose, plan=loose.plan.with_bound(112))
    for plan_file, bound, optimal in [(loose, "load", False), (proved, "search", True)]:
        path = tmp_path / f"{bound}.json"
        planfile.write(path, plan_file)
        document = json.loads(path.read_text())
        assert (document["bound"], document["optimal"]) == (bound, optimal)
        assert planfile.read(path) == plan_file


def test_the_plan_is_accepted_for_its_model():
    PLAN_FILE.check_against(DIGEST, PROBLEM)


def test_a_model_whose_file_name_is_no_text_can_be_planned(tmp_path):
    model = replace(PLAN_FILE.model, name=os.fsdecode(b"m\xff.onnx"))
    planfile.write(tmp_path / "plan.json", replace(PLAN_FILE, model=model))
    assert planfile.read(tmp_path / "plan.json").model.name == "m?.onnx"


def test_a_plan_that_cannot_be_written_leaves_the_old_file(path):
    old = path.read_bytes()
    plan = replace(PLAN_FILE.plan, parameters={"time_limit_s": math.inf})
    with pytest.raises(ValueError, match="not JSON compliant"):
        planfile.write(path, replace(PLAN_FILE, plan=plan))
    assert path.read_bytes() == old
    assert list(path.parent.iterdir()) == [path]


def test_the_order_of_the_records_does_not_matter_to_the_check():
    other = replace(PROBLEM, records=PROBLEM.records[::-1])
    PLAN_FILE.check_against(DIGEST, other)


def changed(**fields):
    records = list(PROBLEM.records)
    records[1] = replace(records[1], **fields)
    return replace(PROBLEM, records=tuple(records))


TWO_MEMORIES = replace(
    PROBLEM,
    records=tuple(
        replace(record, memory=memory)
        for record, memory in zip(PROBLEM.records, ("fast", "slow", "fast"), strict=True)
    ),
    memories=(Memory("fast", 128, 16), Memory("slow", None, 16, writable=False)),
)
IN_TWO = replace(
    PLAN_FILE, problem=TWO_MEMORIES, plan=Plan.of(TWO_MEMORIES, (0, 0, 64), "by-hand")
)


def test_a_plan_for_two_memories_reads_as_it_was_written(tmp_path):
    path = tmp_path / "plan.json"
    planfile.write(path, IN_TWO)
    assert planfile.read(path) == IN_TWO
    document = json.loads(path.read_text())
    schema = json.loads((DOCS / "plan-file.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert [record.get("memory") for record in document["records"]] == [None, "slow", None]
    assert [memory["height"] for memory in document["memories"]] == [80, 64]
    assert (document["height"], document["lower_bound"], document["optimal"]) == (144, 96, False)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ('"memory": "slow"', '"memory": "flash"', UnknownMemoryError, "record 1 lies in 'flash'"),
        ('"name": "slow"', '"name": "fast"', DuplicateNameError, "two memories .* 'fast'"),
        ('"height": 144', '"height": 80', InconsistentError, "height is 80, .* memories is 144"),
        ('"lower_bound": 96', '"lower_bound": 64', InconsistentError, "lower_bound is 64"),
        (' "memory": "slow",', "", OverlapError, "'a' and 'x'"),
        ('"version": 2', '"version": 1', UnknownVersionError, "1; .* plan the model again"),
        ('"version": 2', '"version": 3', UnknownVersionError, "reads version 2$"),
    ],
)
def test_what_a_file_says_of_memories_is_checked(tmp_path, old, new, error, message):
    path = tmp_path / "plan.json"
    text = IN_TWO.to_bytes().decode()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(error, match=message):
        planfile.read(path)


def test_a_bound_below_the_load_of_its_memory_is_refused_though_the_sum_is_not(tmp_path):
    shifted = replace(IN_TWO.plan, offsets=(0, 16, 64), heights=(80, 80), lower_bounds=(16, 80))
    path = tmp_path / "plan.json"
    planfile.write(path, replace(IN_TWO, plan=shifted))
    with pytest.raises(InconsistentError, match="memory 'fast' is 16, the largest load is 32"):
        planfile.read(path)


@pytest.mark.parametrize(
    ("memories", "is_stale"),
    [
        ((Memory("fast", 96, 16), Memory("slow", 64, 16, writable=False)), False),
        ((Memory("fast", 128, 16), Memory("slow", None, 16)), True),
        ((Memory("fast", 128, 8), Memory("slow", None, 16, writable=False)), True),
        ((Memory("slow", None, 16, writable=False), Memory("fast", 128, 16)), True),
    ],
)
def test_the_memories_must_be_the_models_but_for_their_capacity(memories, is_stale):
    problem = replace(TWO_MEMORIES, memories=memories)
    if is_stale:
        with pytest.raises(StaleRecordsError, match="memories"):
            IN_TWO.check_against(DIGEST, problem)
    else:
        IN_TWO.check_against(DIGEST, problem)


def test_a_record_in_another_memory_is_stale():
    records = (TWO_MEMORIES.records[0], replace(TWO_MEMORIES.records[1], memory="fast"))
    with pytest.raises(StaleRecordsError, match=r"in memory 'slow' here and .* in memory 'fast'"):
        IN_TWO.check_against(
            DIGEST, replace(TWO_MEMORIES, records=(*records, TWO_MEMORIES.records[2]))
        )


@pytest.mark.parametrize(
    ("digest", "problem", "error", "message"),
    [
        ("cd" * 32, PROBLEM, WrongModelError, "made for 'tiny.onnx' with digest abab"),
        (DIGEST, replace(PROBLEM, steps=("second", "first")), StaleRecordsError, "order"),
        (DIGEST, replace(PROBLEM, records=PROBLEM.records[:2]), StaleRecordsError,
         "'y' is 16 B .* here and absent in the model"),
        (DIGEST, changed(name="b"), StaleRecordsError, "'a' is .* absent in the model"),
        (DIGEST, changed(size=80), StaleRecordsError, "80 B"),
        (DIGEST, changed(end=1), StaleRecordsError, r"\[0, 1\)"),
        (DIGEST, changed(alignment=32), StaleRecordsError, "aligned to 32"),
        (DIGEST, changed(tensors=("a",)), StaleRecordsError, "with 1 tensors"),
    ],
)  # fmt: skip
def test_another_model_or_other_records_are_refused(digest, problem, error, message):
    with pytest.raises(error, match=message):
        PLAN_FILE.check_against(digest, problem)

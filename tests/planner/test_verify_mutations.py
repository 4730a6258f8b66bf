"""Break every rule of the checker of plans on purpose: a named test must notice each time.

The tests are those of `test_verify`, called with a copy of the checker that has one rule broken.
"""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from arenite.planner.errors import InvalidPlanError
from arenite.planner.placement import verification as checker


class StaleMutationError(AssertionError):
    """The text that a mutation replaces is not there, or not just once."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break a rule, and the test that must notice.

    Attributes:
        rule: What is broken, in words.
        old: Text of the source, which is there once.
        new: What stands in its place.
        test: Name of a function that must fail, with a case in brackets if it takes one.
    """

    rule: str
    old: str
    new: str
    test: str

    def applied(self, source: str) -> str:
        """Return the source with the rule broken.

        Raises:
            StaleMutationError: The source has changed, so that this breaks nothing.
        """
        if (count := source.count(self.old)) != 1:
            raise StaleMutationError(
                f"{self.rule!r}: {self.old!r} is {count} times in the source; "
                "write the mutation anew for what stands there now"
            )
        return source.replace(self.old, self.new)

    def lines(self, source: str) -> range:
        """Return the lines that it changes, counted from 1."""
        begin = source.index(self.old)
        first = source.count("\n", 0, begin) + 1
        return range(first, first + self.old.count("\n") + 1)


def copy_of(module: ModuleType, source: str) -> ModuleType:
    """Return a module of another source, whose errors are those of the original.

    Tests that expect an error class of the original then judge the copy too.
    """
    copy = ModuleType(module.__name__)
    # Dataclasses look their module up by name, and find the original, which serves.
    exec(compile(source, f"a mutant of {module.__name__}", "exec"), copy.__dict__)
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, Exception):
            setattr(copy, name, value)
    return copy


def source_of(module: ModuleType) -> str:
    """Return the text of a module."""
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8")


def deciding_lines(source: str) -> Iterator[int]:
    """Yield the lines in which a function decides: comparisons, conditions and refusals."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.If, ast.While, ast.IfExp)):
                yield node.test.lineno
            elif isinstance(node, (ast.Compare, ast.BoolOp)):
                yield node.lineno


SOURCE = source_of(checker)

EACH_RULE = "test_each_rule_has_its_error"
EACH_MEMORY = "test_each_memory_is_checked_by_itself"
TOUCHING = "test_blocks_that_touch_in_bytes_or_in_time_do_not_overlap"
NEIGHBOURS = "test_an_overlap_is_found_from_below_from_above_and_at_one_offset"
REACH = "test_a_result_reaches_into_its_operand_from_below_as_far_as_permitted"
STAIRS = "test_what_a_record_leaves_of_its_rectangle_is_free"
RIGHT = "test_a_right_plan_passes"
ABOVE = "test_an_overlap_with_what_lies_above_is_found"
APART = "test_records_in_different_memories_may_have_the_same_offsets"

MUTATIONS = [
    Mutation(*row)
    for row in (
        # As many offsets, heights and bounds as there must be.
        ("offsets too few", "len(plan.offsets) != len(problem.records)",
         "len(plan.offsets) > len(problem.records)", f"{EACH_RULE}[an offset too few]"),
        ("offsets too many", "len(plan.offsets) != len(problem.records)",
         "len(plan.offsets) < len(problem.records)", f"{EACH_RULE}[an offset too many]"),
        ("heights as many as memories", "== len(plan.lower_bounds) == num_memories:",
         "== len(plan.lower_bounds):", f"{EACH_RULE}[heights and bounds too many]"),
        ("bounds as many as heights", "== len(plan.lower_bounds) == num_memories:",
         "== num_memories:", f"{EACH_RULE}[a bound too many]"),
        ("heights as many as bounds",
         "len(plan.heights) == len(plan.lower_bounds) == num_memories",
         "len(plan.lower_bounds) == num_memories", f"{EACH_RULE}[a height too many]"),
        # Where a record may lie.
        ("positions looked at", "        _check_position(record, offset)\n", "",
         f"{EACH_RULE}[an offset between multiples]"),
        ("no offset below 0", "if offset < 0:", "if offset < -16:",
         f"{EACH_RULE}[an offset below the start]"),
        ("offset 0 allowed", "if offset < 0:", "if offset <= 0:", RIGHT),
        ("alignment", "if offset % record.alignment:", "if offset % (record.alignment // 2):",
         f"{EACH_RULE}[an offset between multiples]"),
        ("fixed offsets", "record.offset is not None and offset != record.offset",
         "record.offset is not None and offset < record.offset",
         f"{EACH_RULE}[a fixed record elsewhere]"),
        ("records that are not fixed", "record.offset is not None and offset != record.offset",
         "offset != record.offset", RIGHT),
        # Each memory by itself.
        ("memories apart", "placed[record.memory].append",
         "placed[problem.memories[0].name].append", APART),
        ("overlaps looked for", "        _check_overlap(placed[memory.name])\n", "",
         f"{EACH_RULE}[an overlap]"),
        ("overlaps in every memory", "_check_overlap(placed[memory.name])",
         "_check_overlap(placed[problem.memories[-1].name])", EACH_MEMORY),
        ("heights looked at", "_check_height(memory, where, placed[memory.name], height, bound)",
         "pass", f"{EACH_RULE}[a height too low]"),
        ("which memory it was", "if num_memories > 1 else", "if num_memories > 2 else",
         EACH_MEMORY),
        # Heights, bounds and capacities.
        ("the top of a record", "max((offset + record.size for", "max((record.size for",
         RIGHT),
        ("a height too low", "if height != top:", "if height > top:",
         f"{EACH_RULE}[a height too low]"),
        ("a height too high", "if height != top:", "if height < top:",
         f"{EACH_RULE}[a height too high]"),
        ("a bound above the height", "if lower_bound > height:", "if lower_bound > height + 1:",
         f"{EACH_RULE}[a bound above the height]"),
        ("a bound that is the height", "if lower_bound > height:", "if lower_bound >= height:",
         RIGHT),
        ("capacity", "and top > memory.capacity:", "and top > memory.capacity + 16:",
         f"{EACH_RULE}[more than the capacity]"),
        ("a memory that is full", "and top > memory.capacity:", "and top >= memory.capacity:",
         APART),
        ("a memory without capacity", "memory.capacity is not None and top > memory.capacity",
         "top > (memory.capacity or 0)", TOUCHING),
        # Outlines.
        ("records without an outline", "if not record.outline:", "if record.outline:", STAIRS),
        ("where a stair lies", "first = offset + stair.offset", "first = offset", STAIRS),
        ("bytes of a stair", "yield _Piece(record, first, stair.size, ",
         "yield _Piece(record, first, record.size, ", STAIRS),
        ("the first step of a stair", "stair.start, stair.end)", "record.start, stair.end)",
         "test_a_stair_begins_when_it_says"),
        ("the last step of a stair", "stair.start, stair.end)", "stair.start, record.end)",
         STAIRS),
        # The sweep.
        ("in order of their starts", 'key=attrgetter("start")', "key=lambda piece: 0",
         "test_records_may_come_in_any_order"),
        ("in order of their ends", "key=lambda index: pieces[index].end",
         "key=lambda index: pieces[index].start", "test_of_several_the_one_that_died_goes"),
        ("the dead go", "while pieces[by_end[num_dead]].end <= piece.start:", "while False:",
         TOUCHING),
        ("lifetimes are half-open", "].end <= piece.start:", "].end < piece.start:", TOUCHING),
        ("the living stay", "].end <= piece.start:", "].end <= piece.start + 1:", NEIGHBOURS),
        ("the one that died goes", "del live[bisect_left(live, (pieces[dead].offset, dead))]",
         "del live[0]", "test_of_several_the_one_that_died_goes"),
        ("the neighbour below", "live[max(0, position - 1) : position + 1]",
         "live[position : position + 1]", NEIGHBOURS),
        ("the neighbour above", "live[max(0, position - 1) : position + 1]",
         "live[max(0, position - 1) : position]",
         ABOVE),
        ("all that are live, if some may overlap",
         "neighbours = live if may_overlap else live[", "neighbours = live[",
         "test_behind_a_permitted_overlap_another_is_found"),
        ("pieces become live", "        live.insert(position, key)\n",
         "        live.append(key)\n", ABOVE),
        ("the place among the living", "position = bisect_left(live, key)", "position = 0",
         ABOVE),
        # Two records.
        ("a byte in both, above", "a.offset >= b.offset + b.size or",
         "a.offset + 1 >= b.offset + b.size or", NEIGHBOURS),
        ("no byte in both, above", "a.offset >= b.offset + b.size or",
         "a.offset > b.offset + b.size or", TOUCHING),
        ("a byte in both, below", "b.offset >= a.offset + a.size:",
         "b.offset + 1 >= a.offset + a.size:", NEIGHBOURS),
        ("no byte in both, below", "b.offset >= a.offset + a.size:",
         "b.offset > a.offset + a.size:", ABOVE),
        ("bytes in both", "max(a.offset, b.offset), min(", "min(a.offset, b.offset), min(",
         ABOVE),
        ("the end that is lower", "min(a.offset + a.size, b.offset + b.size)",
         "max(a.offset + a.size, b.offset + b.size)",
         "test_an_overlap_names_both_records_the_step_and_the_bytes"),
        ("permission", "if not (_is_permitted(a, b) or _is_permitted(b, a)):", "if True:", REACH),
        ("permission of the first", "(_is_permitted(a, b) or _is_permitted(b, a))",
         "_is_permitted(b, a)", REACH),
        ("permission of the second", "(_is_permitted(a, b) or _is_permitted(b, a))",
         "_is_permitted(a, b)", "test_permission_does_not_depend_on_who_comes_first"),
        ("the step", "step = max(a.start, b.start)", "step = min(a.start, b.start)",
         "test_an_overlap_names_both_records_the_step_and_the_bytes"),
        ("the names in order", "sorted([a.record.name, b.record.name])",
         "[a.record.name, b.record.name]",
         "test_an_overlap_names_both_records_the_step_and_the_bytes"),
        # Permitted overlaps.
        ("how far one reaches", "reach = below.offset + below.size - above.offset",
         "reach = below.size - above.offset", REACH),
        ("whom it may reach into", "overlap.record == above.record.name and ", "",
         "test_behind_a_permitted_overlap_another_is_found"),
        ("as far as permitted", "reach <= overlap.size", "reach <= overlap.size + 1", REACH),
        ("all that is permitted", "reach <= overlap.size", "reach < overlap.size", REACH),
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def tests():
    """The tests of the checker, in a copy of their module whose `verify` may be exchanged."""
    path = Path(__file__).with_name("test_verify.py")
    spec = importlib.util.spec_from_file_location("tests_of_verify", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(tests, name):
    """Yield what calls a test with each of its cases, or with the one in brackets."""
    name, _, wanted = name.rstrip("]").partition("[")
    function = getattr(tests, name)
    (mark,) = getattr(function, "pytestmark", None) or [SimpleNamespace(args=((), [()]))]
    names, values = mark.args
    for value in values:
        if wanted in ("", value):
            yield lambda value=value: function(*([value] if isinstance(names, str) else value))


NOTICED = (pytest.fail.Exception, AssertionError, InvalidPlanError, ValueError, IndexError)
"""What a test, or a checker that lost its way, may raise; a misspelt mutation raises others."""


def fails(tests, monkeypatch, verify, name):
    """Tell whether a test of `test_verify` notices what is wrong with a checker."""
    monkeypatch.setattr(tests, "verify", verify)
    called = list(cases(tests, name))
    assert called, f"no test or case of the name {name!r}"
    for case in called:
        try:
            case()
        except NOTICED:
            return True
    return False


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.rule)
def test_a_broken_rule_is_noticed(tests, monkeypatch, mutation):
    broken = copy_of(checker, mutation.applied(SOURCE))
    assert fails(tests, monkeypatch, broken.verify, mutation.test)


def test_with_no_rule_broken_nothing_is_noticed(tests, monkeypatch):
    whole = copy_of(checker, SOURCE)
    for name in sorted({mutation.test for mutation in MUTATIONS}):
        assert not fails(tests, monkeypatch, whole.verify, name)


def test_every_line_that_decides_is_broken_by_a_mutation():
    broken = {line for mutation in MUTATIONS for line in mutation.lines(SOURCE)}
    spared = sorted(set(deciding_lines(SOURCE)) - broken)
    assert not spared, [SOURCE.splitlines()[line - 1] for line in spared]


def test_every_error_of_the_checker_is_the_answer_to_a_mutation(tests):
    refusals = [name for name in vars(checker) if f"raise {name}(" in SOURCE]
    answered = {error.__name__ for _, error in tests.BROKEN.values()}
    assert set(refusals) == answered


def test_a_mutation_that_no_longer_applies_is_an_error():
    for text in ("not a line of this module", "offset"):
        with pytest.raises(StaleMutationError, match="write the mutation anew"):
            replace(MUTATIONS[0], old=text).applied(SOURCE)

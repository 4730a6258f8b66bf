"""Plans for a range of sizes: their files, and the proof for every size."""

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from arenite.planner import (
    Alias,
    AliasKind,
    Boundary,
    DType,
    PlanFile,
    Problem,
    Program,
    Rules,
    Step,
    Tensor,
    UsageRecord,
    derive,
    liveness,
    planfile,
)
from arenite.planner.errors import SizeError
from arenite.planner.operators.imported import (
    ImportedConcatenation,
    ImportedElementWise,
    ImportedView,
    Opaque,
)
from arenite.planner.placement import (
    MisplacedPartError,
    MovingPart,
    OversizedError,
    Stair,
    UndefinedSizeError,
    UnprovedSizeError,
    UnreachedSizeError,
    size_at,
    verify_sizes,
)
from arenite.planner.planfile import (
    InconsistentError,
    ModelReference,
    OutOfRangeError,
    StaleRecordsError,
    UnknownDimensionError,
    WrongTypeError,
)
from arenite.planner.sizes import Dimension, at, largest
from arenite.planner.units import align_up
from arenite.strategies import find

DIGEST = "0" * 64
SCHEMA = Path(__file__).parents[2] / "docs" / "plan-file.schema.json"
SEQ = Dimension("seq", 1, 512)
WIDTH = Dimension("input:3", 32, 320, 32)
ROUNDED = ["*", 64, ["/", ["+", "seq", 15], 16]]
"""4 B for each of `seq`, rounded up to 64 B."""


def _record(name: str, size: int, expression: object, start: int = 0, end: int = 2) -> UsageRecord:
    return UsageRecord(name, size, start, end, 16, expression=_tuple(expression))


def _tuple(tree):
    return tuple(map(_tuple, tree)) if isinstance(tree, list) else tree


def _plan_file() -> PlanFile:
    records = (
        _record("ids", 2048, ROUNDED, 0, 1),
        _record("hidden", 512 * 64, ["*", 64, "seq"], 0, 2),
        _record("image", 320 * 16, ["*", 16, "input:3"], 1, 2),
        UsageRecord("logits", 64, 1, 2, 16),
    )
    problem = Problem(records, ("embed", "score"))
    return PlanFile(
        ModelReference("model.onnx", DIGEST, {"seq": SEQ}, {"input": (1, 3, 224, WIDTH)}),
        "arenite", Boundary.INCLUDE, 16, (), problem, find("best")(problem),
        dimensions=(SEQ, WIDTH),
    )  # fmt: skip


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "plan.json"
    planfile.write(path, _plan_file())
    return json.loads(path.read_text())


def _read(tmp_path, document) -> PlanFile:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document))
    return planfile.read(path)


def test_a_plan_for_a_range_is_kept(tmp_path):
    path = tmp_path / "plan.json"
    planfile.write(path, _plan_file())
    assert planfile.read(path) == _plan_file()
    assert planfile.read(path).to_bytes() == path.read_bytes()
    document = json.loads(path.read_text())
    assert document["dimensions"] == {"seq": "1..512", "input:3": "32..320:32"}
    assert document["model"]["dims"] == {"seq": "1..512"}
    assert document["model"]["shapes"] == {"input": [1, 3, 224, "32..320:32"]}
    assert document["records"][0]["expression"] == ROUNDED
    assert "expression" not in document["records"][3]
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(document)


def test_sizes_of_a_plan_are_known_at_every_value():
    ids, hidden, image, logits = _plan_file().problem.records
    sizes = {"seq": 17, "input:3": 64}
    assert [size_at(each, sizes) for each in (ids, hidden, image, logits)] == [128, 1088, 1024, 64]


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ({}, WrongTypeError, "dict, a whole number expected"),
        (True, WrongTypeError, "bool, a whole number expected"),
        (1.5, WrongTypeError, "float, a whole number expected"),
        ([], WrongTypeError, "a list that begins with one of"),
        ([[]], WrongTypeError, "a list that begins with one of"),
        (["-", "seq", 1], WrongTypeError, "a list that begins with one of"),
        (["+", "seq"], WrongTypeError, "1 operands, two or more expected"),
        (["/", "seq", 2, 2], WrongTypeError, "3 operands, two expected"),
        ("batch", UnknownDimensionError, "names 'batch', which dimensions does not have"),
        (2048, InconsistentError, "names no dimension"),
        (["+", 1 << 64, "seq"], OutOfRangeError, "2\\^63 - 1 expected"),
        (["+", *(["seq"] * 5000)], OutOfRangeError, "at most 4096 operands"),
        (["*", 5, "seq"], OversizedError, "takes 2050 B at seq=410; it was placed with 2048 B"),
        (["*", 3, "seq"], UnreachedSizeError, "takes 1536 B at most, it was placed with 2048 B"),
        (["+", ["*", 8, "seq"], -2048], UndefinedSizeError, "-2040 B at seq=1; at least 0"),
        (["/", 2048, ["+", "seq", -1]], UndefinedSizeError, "divides by 0 or less"),
        (["*", *(["seq"] * 8)], UndefinedSizeError, "exceeds 2\\^62"),
        (["*", "seq", "seq", ["+", 513, ["*", -1, "seq"]]], OversizedError, "at seq=3; it was"),
    ],
)
def test_an_expression_that_is_wrong_is_refused(tmp_path, document, expression, error, message):
    document["records"][0]["expression"] = expression
    with pytest.raises(error, match=message):
        _read(tmp_path, document)


def test_an_expression_is_not_nested_without_end(tmp_path, document):
    tree: object = "seq"
    for _ in range(100):
        tree = ["+", tree, 0]
    document["records"][0]["expression"] = tree
    with pytest.raises(OutOfRangeError, match="64 levels"):
        _read(tmp_path, document)


def test_many_values_of_an_expression_that_is_not_monotone_are_not_tried(tmp_path, document):
    document["dimensions"]["seq"] = "1..5000000"
    document["records"][0]["expression"] = ["max", 2048, ["+", "seq", ["*", -1, "seq"]]]
    with pytest.raises(UnprovedSizeError, match="5,000,000 values to try; give a larger step"):
        _read(tmp_path, document)


@pytest.mark.parametrize(
    ("stated", "error", "message"),
    [
        ([], WrongTypeError, "dimensions is list"),
        ({}, OutOfRangeError, "dimensions is empty"),
        ({"seq": 512}, WrongTypeError, "dimension 'seq' is int, text expected"),
        ({"seq": "512"}, WrongTypeError, "a range such as '1..512' expected"),
        ({"seq": "9..9"}, WrongTypeError, "a range such as '1..512' expected"),
        ({"seq": "1..."}, OutOfRangeError, "expected a length such as 17, or a range"),
        ({"seq": "512..1"}, OutOfRangeError, "a range needs 0 <= low <= high"),
        ({"seq": "1..512:64"}, OutOfRangeError, "do not lead to 512"),
        ({"seq": "1..512"}, UnknownDimensionError, "names 'input:3'"),
        ({"seq": "1..512", "input:3": "32..640:32"}, OversizedError, "'image' takes 5632 B"),
        ({"seq": "1..512", "input:3": "32..288:32"}, UnreachedSizeError, "'image' takes 4608 B"),
    ],
)
def test_dimensions_that_are_wrong_are_refused(tmp_path, document, stated, error, message):
    document["dimensions"] = stated
    with pytest.raises(error, match=message):
        _read(tmp_path, document)


def test_an_expression_without_dimensions_is_refused(tmp_path, document):
    del document["dimensions"]
    with pytest.raises(UnknownDimensionError, match="names 'seq'"):
        _read(tmp_path, document)


@pytest.mark.parametrize("text", ["1..", "512..1", "1..512:64", ""])
def test_a_range_of_the_model_that_is_wrong_is_refused(tmp_path, document, text):
    document["model"]["dims"] = {"seq": text}
    with pytest.raises(OutOfRangeError, match="seq="):
        _read(tmp_path, document)


def _with_part(begin: object, stop: object, end: int = 2) -> UsageRecord:
    part = MovingPart("part", _tuple(begin), _tuple(stop), 0, end)
    stairs = (Stair(0, 1024, 0, 1), Stair(1024, 1024, 0, 2))
    return replace(_record("whole", 2048, ROUNDED), outline=stairs, parts=(part,))


@pytest.mark.parametrize(
    ("begin", "stop", "end", "where"),
    [
        (["*", 2, "seq"], ["*", 4, "seq"], 1, None),
        # Its last byte is the last of the record at every size.
        (["+", 2048, ["*", -2, "seq"]], 2048, 2, None),
        (
            ["+", 2048, ["*", -2, "seq"]],
            ["+", 2049, ["/", "seq", 512]],
            1,
            "bytes 2046 to 2049 of 'whole' at seq=1",
        ),
        (["*", 2, "seq"], ["*", 4, "seq"], 2, "bytes 2 to 4 of 'whole' at seq=1"),
        (["+", "seq", -2], ["*", 4, "seq"], 1, "bytes -1 to 4 of 'whole' at seq=1"),
        (2048, ["+", 2047, "seq"], 1, "bytes 2048 to 2049 of 'whole' at seq=2"),
    ],
)
def test_a_part_lies_where_its_record_is_needed_at_every_size(tmp_path, begin, stop, end, where):
    record = _with_part(begin, stop, end)
    if where is None:
        verify_sizes(Problem((record,)), (SEQ,))
        return
    with pytest.raises(MisplacedPartError, match=where):
        verify_sizes(Problem((record,)), (SEQ,))


def test_a_plan_file_states_what_moves_in_a_record(tmp_path):
    plan_file = _plan_file()
    first = replace(
        plan_file.problem.records[0],
        parts=(MovingPart("part", ("*", 2, "seq"), ("*", 4, "seq"), 0, 1),),
    )
    problem = replace(plan_file.problem, records=(first, *plan_file.problem.records[1:]))
    path = tmp_path / "plan.json"
    planfile.write(path, replace(plan_file, problem=problem))
    document = json.loads(path.read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert planfile.read(path).problem == problem
    with pytest.raises(StaleRecordsError, match="1 of them moving"):
        replace(plan_file, problem=problem).check_against(DIGEST, plan_file.problem, (WIDTH, SEQ))
    document["records"][0]["parts"][0].pop()
    with pytest.raises(WrongTypeError, match="a part of record 0"):
        _read(tmp_path, document)


def test_a_plan_for_another_range_or_expression_is_stale():
    plan_file = _plan_file()
    problem = plan_file.problem
    plan_file.check_against(DIGEST, problem, (WIDTH, SEQ))
    with pytest.raises(StaleRecordsError, match=r"dimensions are .* in the model"):
        plan_file.check_against(DIGEST, problem, (Dimension("seq", 1, 64), WIDTH))
    changed = replace(problem.records[1], expression=("*", 32, ("*", 2, "seq")))
    other = replace(problem, records=(problem.records[0], changed, *problem.records[2:]))
    with pytest.raises(StaleRecordsError, match=r"'hidden' is 32768 B by \[\"\*\", 64, \"seq\"\]"):
        plan_file.check_against(DIGEST, other, (SEQ, WIDTH))


def _program(shapes: dict[str, tuple[int, ...]], aliases: dict[str, Alias] | None = None):
    aliases = aliases or {}
    tensors = [
        Tensor(name, DType.FLOAT32, shape, alias=aliases.get(name))
        for name, shape in shapes.items()
    ]
    names = list(shapes)
    steps = [
        Step(f"make_{after}", Opaque("Any"), (before,), (after,))
        for before, after in itertools.pairwise(names)
    ]
    return Program.of("chain", tensors, steps, names[:1], names[-1:], dimensions=(SEQ,))


def test_a_tensor_that_is_largest_at_a_smaller_size_is_refused():
    seq = SEQ.size
    with pytest.raises(SizeError, match="'b' takes 4 to 2048 B, and 4 B at the highest sizes"):
        liveness(_program({"a": (seq,), "b": (513 - seq,)}))


def test_a_tensor_that_leaves_its_storage_at_some_size_is_refused():
    seq = SEQ.size
    program = _program({"a": (seq,), "b": (largest(seq, 512),)}, {"b": Alias("a")})
    with pytest.raises(SizeError, match="'b': at some size its bytes are not inside 'a'"):
        liveness(program)


_RANGES = (
    Dimension("seq", 1, 96),
    Dimension("past", 0, 40),
    Dimension("width", 32, 320, 32),
    Dimension("height", 7, 61, 6),
)


_KINDS = ("unary", "unary", "concat", "rows", "window", "wide", "most", "flat")


class _Network:
    """A random network whose lengths are arithmetic on those of two inputs, plain or sized."""

    def __init__(self, seed: int, lengths: tuple[int, int]) -> None:
        self.rng = random.Random(seed)
        self.tensors: dict[str, Tensor] = {}
        self.steps: list[Step] = []
        self.num_wide = 0
        self.widths: dict[str, int | str] = {}  # columns, or the tensor that has so many rows
        for name, length in zip("xy", lengths, strict=True):
            self.widths[name] = columns = self.rng.choice((1, 3, 8))
            self._tensor(name, (length, columns))
        for _ in range(self.rng.randint(4, 14)):
            self._step()
        used = {name for step in self.steps for name in step.inputs}
        self.outputs = [step.outputs[0] for step in self.steps if step.outputs[0] not in used]

    def program(self, dimensions: tuple[Dimension, ...] = ()) -> Program:
        return Program.of(
            "random", self.tensors.values(), self.steps, ["x", "y"], self.outputs,
            dimensions=dimensions,
        )  # fmt: skip

    def _tensor(self, name: str, shape: tuple[int, ...]) -> None:
        dtype = self.rng.choice((DType.FLOAT32, DType.INT8))
        self.tensors[name] = Tensor(name, dtype, shape)

    def _step(self) -> None:
        name = f"t{len(self.steps)}"
        source = self.tensors[self.rng.choice(list(self.tensors)[-4:])]
        other = self.tensors[self.rng.choice(list(self.tensors))]
        rows, columns = source.shape
        kind = self.rng.choice(_KINDS)
        inputs: tuple[str, ...] = (source.name,)
        operator: Opaque | ImportedElementWise | ImportedView | ImportedConcatenation
        operator, shape = Opaque("Any"), (rows, columns)
        width = self.widths[source.name]
        if kind == "unary":
            operator = ImportedElementWise("Relu")
        elif kind == "flat":
            operator, shape, width = ImportedView("Reshape"), (rows * columns, 1), 1
        elif kind == "concat" and self.widths[other.name] == width and other.dtype is source.dtype:
            operator = ImportedConcatenation("Concat")
            inputs, shape = (source.name, other.name), (rows + other.shape[0], columns)
        elif kind == "rows":
            shape = ((rows + 1) // 2, columns)
        elif kind == "window":
            stride, width = self.rng.choice((1, 2, 3)), self.rng.choice((1, 3, 8))
            shape = ((rows + 2 - 1) // stride + 1, width)
        elif kind == "wide" and self.num_wide < 3:
            self.num_wide += 1
            width = other.name
            inputs, shape = (source.name, other.name), (rows, other.shape[0])
        elif kind == "most":
            inputs, shape = (source.name, other.name), (largest(rows, other.shape[0]), columns)
        self.widths[name] = width
        self._tensor(name, shape)
        if kind in ("unary", "flat", "concat"):
            tensor = self.tensors[name]
            self.tensors[name] = replace(tensor, dtype=source.dtype)
        self.steps.append(Step(name, operator, inputs, (name,)))


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_of_random_sizes_holds_at_a_hundred_of_them(seed):
    """The judge counts bytes and lifetimes itself, with plain numbers at each point."""
    rng = random.Random(1000 + seed)
    dimensions = tuple(rng.sample(_RANGES, 2))
    x, y = dimensions
    program = _Network(seed, (x.size, y.size)).program(dimensions)
    kinds = (AliasKind.VIEWS, AliasKind.IN_PLACE, AliasKind.CONCAT, AliasKind.REUSE_INPUTS)
    derived = derive(program, Rules(kinds, alignment=16))
    plan = find("greedy-by-size")(derived.problem)
    verify_sizes(derived.problem, dimensions)
    records = {record.name: record for record in derived.problem.records}
    offsets = dict(zip(records, plan.offsets, strict=True))
    for _ in range(100):
        values = {each: range(each.low, each.high + 1, each.step) for each in dimensions}
        sizes = {each.name: rng.choice(values[each]) for each in dimensions}
        plain = _Network(seed, (sizes[x.name], sizes[y.name]))
        places: dict[str, tuple[str, int, int]] = {}
        for name in derived.program.tensors:
            root, first = derived.program.root(name)
            own = plain.tensors[name].size
            begin = offsets.get(root, 0) + at(first, sizes)
            places[name] = (root, begin, begin + own)
            if root not in records:
                assert own == 0
                continue
            record = records[root]
            assert begin + own <= offsets[root] + size_at(record, sizes)
            assert size_at(record, sizes) <= record.size
            if root == name:
                assert size_at(record, sizes) == align_up(own, 16)
        _judge(plain, [step.name for step in derived.program.steps], places)


def _judge(plain: _Network, order: list[str], places: dict[str, tuple[str, int, int]]) -> None:
    by_name = {step.name: step for step in plain.steps}
    born = {"x": 0, "y": 0} | {by_name[name].outputs[0]: at for at, name in enumerate(order)}
    dies = dict(born)
    for now, name in enumerate(order):
        for each in by_name[name].inputs:
            dies[each] = max(dies[each], now)
    for name in plain.outputs:
        dies[name] = len(order)
    for one, other in itertools.combinations(places, 2):
        if max(born[one], born[other]) <= min(dies[one], dies[other]):
            (root, first, last), (other_root, other_first, other_last) = places[one], places[other]
            shares = first < other_last and other_first < last and first < last
            assert not (shares and root != other_root), f"{one} and {other} share bytes"

"""Read a plan file without trusting it: every field is checked before use."""

import re
import reprlib
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path

from arenite.planner.errors import ModelError, SizeError, about_file
from arenite.planner.files import read_json
from arenite.planner.placement.outline import Stair
from arenite.planner.placement.plan import ParameterValue, Plan
from arenite.planner.placement.problem import MovingPart, PermittedOverlap, Problem, UsageRecord
from arenite.planner.placement.size_verification import SIGNS, verify_sizes
from arenite.planner.placement.verification import verify
from arenite.planner.planfile import values
from arenite.planner.planfile.bands import Bands, read_bands
from arenite.planner.planfile.contents import FORMAT, VERSION, ModelReference, PlanFile
from arenite.planner.planfile.errors import (
    DuplicateNameError,
    InconsistentError,
    NotAPlanFileError,
    OutOfRangeError,
    UnknownDimensionError,
    UnknownMemoryError,
    UnknownVersionError,
    UnreadablePlanFileError,
    WrongTypeError,
)
from arenite.planner.planfile.values import MAX_NUMBER, Object
from arenite.planner.programs.rules import AliasKind, Boundary
from arenite.planner.programs.run_verification import verify_run
from arenite.planner.sizes import Dimension, Length, Tree, read_lengths
from arenite.planner.tensors import Memory

_MAX_MEBIBYTES = 64

_FIELDS = (
    "format", "version", "model", "target", "boundary", "alignment", "aliases", "memories",
    "height", "lower_bound", "bound", "optimal", "strategy", "order", "records",
)  # fmt: skip
_MODEL_FIELDS = ("name", "sha256", "dims", "shapes")
_STORED_TYPES = {"activations": ("fp16", "fp32"), "cache": ("fp16", "fp32", "int8")}
_MEMORY_FIELDS = ("name", "capacity", "alignment", "writable", "height", "lower_bound")
_RECORD_FIELDS = ("name", "offset", "size", "start", "end", "tensors")
_RECORD_OPTIONS = ("memory", "alignment", "overlaps", "outline", "expression", "parts")
_MOST_NODES = 4096
_MOST_LEVELS = 64
_BUDGET = re.compile(r"([1-9][0-9]{0,18}|(0|[1-9][0-9]?|100)(\.[0-9]{1,9})?%)(,(beside|in-turn))?")
"""Bytes, or per cent, and how the others are loaded."""


def read(path: Path) -> PlanFile:
    """Return the contents of a plan file after checking all of it.

    Raises:
        PlanFileError: The file is unusable; the subclass says why.
        InvalidPlanError: The file is sound but its plan is not.
    """
    with about_file(path):
        document = _document(path)
        dimensions = _dimensions(document)
        problem = _problem(document, dimensions)
        plan_file = PlanFile(
            model=_model(values.member(document, "model")),
            target=values.text(document, "target"),
            boundary=Boundary(values.choice(document, "boundary", tuple(Boundary))),
            alignment=values.alignment(document, "alignment"),
            aliases=_aliases(document),
            problem=problem,
            plan=_plan(document),
            bands=_bands(document, problem),
            dimensions=dimensions,
        )
        verify(problem, plan_file.plan)
        verify_sizes(problem, dimensions)
        if plan_file.bands is not None:
            verify_run(plan_file.bands.run, problem.rectangles(plan_file.plan.offsets))
        _check_totals(document, plan_file)
    return plan_file


def _document(path: Path) -> Object:
    value = read_json(path, _MAX_MEBIBYTES, NotAPlanFileError, UnreadablePlanFileError)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise NotAPlanFileError(f"not a plan file: no format {FORMAT!r}")
    document: Object = value
    version = document.get("version")
    if type(version) is not int or version != VERSION:  # true == 1.0 == 1
        is_older = type(version) is int and 0 < version < VERSION
        remedy = "; plan the model again" if is_older else ""
        raise UnknownVersionError(
            f"version {reprlib.repr(version)}; this Arenite reads version {VERSION}{remedy}"
        )
    values.check_fields(document, "the file", _FIELDS, ("bands", "dimensions"))
    return document


def _model(model: Object) -> ModelReference:
    optional = ("weight_budget", "values", "activations", "cache")
    values.check_fields(model, "model", _MODEL_FIELDS, optional)
    budget = values.text(model, "weight_budget") if "weight_budget" in model else ""
    if "weight_budget" in model and not _BUDGET.fullmatch(budget):
        raise WrongTypeError(
            f"weight_budget is {budget!r}, bytes or per cent, as they are or with "
            "',in-turn' or ',beside' behind, expected"
        )
    dims = values.member(model, "dims")
    shapes = values.member(model, "shapes")
    digest = values.text(model, "sha256")
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise WrongTypeError("sha256 is not 64 lower-case hexadecimal digits")
    return ModelReference(
        values.text(model, "name"),
        digest,
        _dims(dims),
        {
            name: tuple(
                _length(size, f"{name}:{axis}")
                for axis, size in enumerate(values.items(shapes, name))
            )
            for name in shapes
        },
        budget,
        _fixed(values.member(model, "values") if "values" in model else {}),
        *(
            values.choice(model, field, choices) if field in model else ""
            for field, choices in _STORED_TYPES.items()
        ),
    )


def _dims(stated: Object) -> dict[str, Length]:
    """Return numbers of at least 1, ranges, and sums of these."""
    lengths = {
        name: value if isinstance(value, str) else values.as_number(value, name, 1)
        for name, value in stated.items()
    }
    try:
        return read_lengths(lengths)
    except SizeError as error:
        raise OutOfRangeError(error.reason) from error


def _length(value: object, name: str) -> Length:
    """Return a number, or the range that a text states."""
    return _range(value, name) if isinstance(value, str) else values.as_number(value, name)


def _range(value: object, name: str) -> Dimension:
    try:
        found = Dimension.parse(name, values.as_text(value, f"dimension {name!r}"))
    except SizeError as error:
        raise OutOfRangeError(error.reason) from error
    if not isinstance(found, Dimension):
        raise WrongTypeError(f"dimension {name!r} is {value!r}, a range such as '1..512' expected")
    return found


def _dimensions(document: Object) -> tuple[Dimension, ...]:
    if "dimensions" not in document:
        return ()
    stated = values.member(document, "dimensions")
    if not stated:
        raise OutOfRangeError("dimensions is empty, at least one expected")
    return tuple(_range(value, name) for name, value in stated.items())


def _expression(
    value: object, where: str, dimensions: Container[str], *, may_be_fixed: bool = False
) -> Tree:
    """Return an expression of a record: of its size, or of the place of a part."""
    names: set[str] = set()
    rest = [_MOST_NODES]

    def tree(value: object, level: int) -> Tree:
        rest[0] -= 1
        if rest[0] < 0 or level > _MOST_LEVELS:
            raise OutOfRangeError(
                f"the expression of {where} is too large: at most {_MOST_NODES} operands on "
                f"{_MOST_LEVELS} levels expected"
            )
        if isinstance(value, str):
            if value not in dimensions:
                raise UnknownDimensionError(
                    f"the expression of {where} names {value!r}, which dimensions does not have"
                )
            names.add(value)
            return value
        if isinstance(value, list):
            if not value or not isinstance(value[0], str) or value[0] not in SIGNS:
                raise WrongTypeError(
                    f"the expression of {where} has {reprlib.repr(value)}, a list that begins "
                    f"with one of {', '.join(sorted(SIGNS))} expected"
                )
            sign, *operands = value
            if len(operands) < 2 or (sign == "/" and len(operands) > 2):
                raise WrongTypeError(
                    f"the expression of {where} has {sign!r} with {len(operands)} operands, "
                    f"{'two' if sign == '/' else 'two or more'} expected"
                )
            return (sign, *(tree(each, level + 1) for each in operands))
        return values.as_number(value, f"a number in the expression of {where}", -MAX_NUMBER)

    found = tree(value, 0)
    if not (names or may_be_fixed):
        raise InconsistentError(f"the expression of {where} names no dimension")
    return found


def _fixed(stated: Object) -> dict[str, float]:
    fixed: dict[str, float] = {}
    for name, value in stated.items():
        is_integer = type(value) is int and abs(value) <= MAX_NUMBER  # true is no int here
        if not (is_integer or isinstance(value, float)):
            raise values.wrong_type(name, value, "a number")
        assert isinstance(value, int | float)
        fixed[name] = value
    return fixed


def _aliases(document: Object) -> tuple[AliasKind, ...]:
    kinds = values.texts(document, "aliases")
    for kind in kinds:
        if kind not in tuple(AliasKind) or kinds.count(kind) > 1:
            raise WrongTypeError(
                f"aliases has {kind!r}, each of {', '.join(AliasKind)} once expected"
            )
    return tuple(map(AliasKind, kinds))


def _problem(document: Object, dimensions: Sequence[Dimension]) -> Problem:
    alignment = values.alignment(document, "alignment")
    order = values.texts(document, "order")
    if len(set(order)) != len(order):
        raise DuplicateNameError("order names an operator twice")
    memories = _memories(document)
    names = {each.name for each in dimensions}
    records: dict[str, UsageRecord] = {}
    placed: set[str] = set()
    for index, item in enumerate(values.items(document, "records")):
        record = _record(item, index, alignment, memories, names)
        if record.name in records:
            raise DuplicateNameError(f"two records are named {record.name!r}")
        records[record.name] = record
        for tensor in record.tensors:
            if tensor in placed:
                raise DuplicateNameError(f"tensor {tensor!r} is placed twice")
            placed.add(tensor)
        if order and record.end > len(order):
            raise OutOfRangeError(
                f"record {record.name!r} ends at step {record.end}, there are {len(order)}"
            )
    try:
        return Problem(tuple(records.values()), order, tuple(memories.values()))
    except ModelError as error:
        raise InconsistentError(error.reason) from error


def _bands(document: Object, problem: Problem) -> Bands | None:
    if "bands" not in document:
        return None
    return read_bands(values.member(document, "bands"), problem.memories, len(problem.steps))


def _memories(document: Object) -> dict[str, Memory]:
    """Return the memories by name, at least one."""
    memories: dict[str, Memory] = {}
    for index, item in enumerate(values.items(document, "memories")):
        where = f"memory {index}"
        entry = values.as_object(item, where)
        values.check_fields(entry, where, _MEMORY_FIELDS)
        name = values.text(entry, "name")
        if not name:
            raise WrongTypeError(f"{where} has an empty name")
        if name in memories:
            raise DuplicateNameError(f"two memories are named {name!r}")
        memories[name] = Memory(
            name,
            None if entry["capacity"] is None else values.number(entry, "capacity"),
            values.alignment(entry, "alignment"),
            values.flag(entry, "writable"),
        )
    if not memories:
        raise OutOfRangeError("memories is empty, at least one expected")
    return memories


def _record(
    value: object,
    index: int,
    alignment: int,
    memories: dict[str, Memory],
    dimensions: Container[str],
) -> UsageRecord:
    where = f"record {index}"
    entry = values.as_object(value, where)
    values.check_fields(entry, where, _RECORD_FIELDS, _RECORD_OPTIONS)
    memory = values.text(entry, "memory") if "memory" in entry else next(iter(memories))
    if memory not in memories:
        raise UnknownMemoryError(f"{where} lies in {memory!r}, which memories does not have")
    start = values.number(entry, "start")
    overlaps = values.member(entry, "overlaps") if "overlaps" in entry else {}
    record = UsageRecord(
        name=values.text(entry, "name"),
        size=values.number(entry, "size", 1),
        start=start,
        end=values.number(entry, "end", start + 1),
        alignment=values.alignment(entry, "alignment") if "alignment" in entry else alignment,
        tensors=values.texts(entry, "tensors"),
        overlaps=tuple(
            PermittedOverlap(name, values.number(overlaps, name, 1)) for name in overlaps
        ),
        memory=memory,
        expression=(
            _expression(entry["expression"], where, dimensions) if "expression" in entry else None
        ),
        parts=tuple(
            _part(each, where, dimensions)
            for each in (values.items(entry, "parts") if "parts" in entry else ())
        ),
    )
    if "outline" not in entry:
        return record
    try:
        return replace(record, outline=_outline(entry, where))
    except ModelError as error:
        raise InconsistentError(error.reason) from error


def _part(value: object, where: str, dimensions: Container[str]) -> MovingPart:
    if not isinstance(value, list) or len(value) != 5 or not isinstance(value[0], str):
        raise values.wrong_type(
            f"a part of {where}", value, "a tensor, two expressions and two numbers"
        )
    begin, stop = (_expression(each, where, dimensions, may_be_fixed=True) for each in value[1:3])
    start, end = (values.as_number(number, "a part") for number in value[3:])
    return MovingPart(value[0], begin, stop, start, end)


def _outline(entry: Object, where: str) -> tuple[Stair, ...]:
    stairs = values.items(entry, "outline")
    if not stairs:
        raise OutOfRangeError(f"{where} has an empty outline, at least one stair expected")
    return tuple(_stair(stair, where) for stair in stairs)


def _stair(value: object, where: str) -> Stair:
    if not isinstance(value, list) or len(value) != 4:
        raise values.wrong_type(f"a stair of {where}", value, "a list of four numbers")
    offset, size, start, end = (values.as_number(number, "a stair") for number in value)
    return Stair(offset, size, start, end)


def _plan(document: Object) -> Plan:
    strategy = values.member(document, "strategy")
    values.check_fields(strategy, "strategy", ("name", "parameters"))
    parameters: dict[str, ParameterValue] = {}
    for name, value in values.member(strategy, "parameters").items():
        if not isinstance(value, bool | int | float | str):
            raise values.wrong_type(name, value, "a number, text or true or false")
        parameters[name] = value
    records = [values.as_object(item, "record") for item in values.items(document, "records")]
    memories = [values.as_object(item, "memory") for item in values.items(document, "memories")]
    return Plan(
        tuple(values.number(record, "offset", -MAX_NUMBER) for record in records),
        tuple(values.number(memory, "height") for memory in memories),
        values.text(strategy, "name"),
        tuple(values.number(memory, "lower_bound") for memory in memories),
        parameters,
    )


def _check_totals(document: Object, plan_file: PlanFile) -> None:
    """Check the file's totals against its figures for each memory."""
    plan = plan_file.plan
    for name, total in (("height", plan.height), ("lower_bound", plan.lower_bound)):
        stated = values.number(document, name)
        if stated != total:
            raise InconsistentError(f"{name} is {stated}, that of all memories is {total}")
    loads = plan_file.problem.lower_bounds
    bound = values.choice(document, "bound", ("load", "search"))
    for memory, proved, load in zip(
        plan_file.problem.memories, plan.lower_bounds, loads, strict=True
    ):
        if proved < load:
            raise InconsistentError(
                f"lower_bound of memory {memory.name!r} is {proved}, the largest load is {load}"
            )
    if (bound == "load") != (plan.lower_bounds == loads):
        raise InconsistentError(
            f"lower_bound is {plan.lower_bound} from {bound}, the largest loads are {sum(loads)}"
        )
    if values.flag(document, "optimal") != plan.optimal:
        raise InconsistentError(
            f"optimal contradicts height {plan.height} and lower_bound {plan.lower_bound}"
        )

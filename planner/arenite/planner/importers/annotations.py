"""A plan in the metadata of an ONNX model, under the keys that onnxsim 0.8 writes and reads.

Each value (an input, an output, an entry of `value_info`) has `onnxsim.mem_offset` and
`onnxsim.mem_size`; the model has `onnxsim.memory_plan_arena_bytes` and three more totals. What
these keys do not say, such as the sharing that the plan counts on, stands in `arenite.plan`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx.helper

from arenite.planner.errors import InvalidPlanError, ModelFormatError, about_file
from arenite.planner.files import model_digest
from arenite.planner.importers.models import Source, read
from arenite.planner.importers.onnx.external_data import embed
from arenite.planner.importers.onnx.file import load_model
from arenite.planner.importers.onnx.types import write_dtype
from arenite.planner.placement.plan import Plan
from arenite.planner.placement.verification import verify
from arenite.planner.planfile import values
from arenite.planner.planfile.contents import ModelReference, PlanFile
from arenite.planner.planfile.errors import (
    InconsistentError,
    MissingFieldError,
    NotAPlanFileError,
    OutOfRangeError,
    StaleRecordsError,
    WrongTypeError,
)
from arenite.planner.programs.program import Program
from arenite.planner.programs.rules import AliasKind, Boundary
from arenite.planner.tensors import Tensor, TensorKind

TARGET = "generic"
"""Whose records a model's annotations are: those of the graph as written."""

SHARED_BY_READERS = (AliasKind.VIEWS, AliasKind.IN_PLACE)
"""Kinds of sharing of onnxsim, which readers of its keys must expect."""

_PREFIX = "onnxsim."
_TOTAL = f"{_PREFIX}memory_plan_"
_OWN = "arenite.plan"
_MOST_NAMES = 20


def annotated(path: Path, plan_file: PlanFile) -> bytes:
    """Return the model with the plan in its metadata, and shapes for all that is planned.

    Weights beside the model come into the file.

    Args:
        path: The ONNX file that the plan was made for.
        plan_file: A plan of the graph as written, its operators in the order of the file.

    Raises:
        PlanFileError: The plan is for another model, target or order.
        ModelError: The model cannot be read.
    """
    if plan_file.target != TARGET:
        raise StaleRecordsError(
            f"the plan is for {plan_file.target!r}; a model is annotated with a plan for "
            f"{TARGET!r}: make it with arenite plan --target {TARGET} --order given"
        )
    if plan_file.dimensions:
        raise StaleRecordsError("the plan is for a range of sizes; a model is annotated with one")
    reference = plan_file.model
    source = read(
        path, dims=reference.dims, shapes=reference.shapes, values=reference.values,
        boundary=plan_file.boundary, alignment=plan_file.alignment, aliases=plan_file.aliases,
        outlines=plan_file.problem.has_outlines,
    )  # fmt: skip
    plan_file.check_against(source.digest, source.problem, source.dimensions)
    program = _program_of(source)
    model = load_model(path)
    with about_file(path):
        embed(model.graph, path.parent)
    places = _places(program, plan_file)
    described = _described(model, program)
    for name, (offset, size) in places.items():
        if name in described:
            _set(described[name], f"{_PREFIX}mem_offset", str(offset))
            _set(described[name], f"{_PREFIX}mem_size", str(size))
    naive = sum(size for _, size in places.values())
    height = plan_file.plan.height
    unplanned = sorted(
        name
        for name in described
        if name in program.tensors and name not in places and _takes_bytes(program.tensors[name])
    )
    _set(model, f"{_TOTAL}arena_bytes", str(height))
    _set(model, f"{_TOTAL}naive_bytes", str(naive))
    _set(model, f"{_TOTAL}compression_ratio", f"{1 - height / naive if naive else 0:.4f}")
    _set(model, f"{_TOTAL}unplanned_count", str(len(unplanned)))
    if unplanned:
        _set(model, f"{_TOTAL}unplanned", _listed(unplanned))
    _set(model, _OWN, json.dumps(_own(plan_file), sort_keys=True))
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def read_annotations(path: Path) -> PlanFile:
    """Return the plan that a model carries in its metadata, verified.

    A model that onnxsim annotated is read as sharing nothing and, if its plan is wrong then, as
    sharing views and element-wise results.

    Raises:
        PlanFileError: The model has no such metadata, or they are not a plan of it.
        InvalidPlanError: The plan breaks a rule.
        ModelError: The model cannot be read.
    """
    model = load_model(path)
    with about_file(path):
        stated = dict(_stated(model))
        if not stated:
            raise NotAPlanFileError(
                f"no value has {_PREFIX}mem_offset in its metadata; write them with arenite "
                "annotate"
            )
        texts = {entry.key: entry.value for entry in model.metadata_props}
        arena = _whole(texts, f"{_TOTAL}arena_bytes")
        if _OWN in texts:
            return _read_own(path, _document(texts[_OWN]), stated, arena)
        try:
            return _read_as(path, stated, arena, "onnxsim", 1, ())
        except InvalidPlanError:
            return _read_as(path, stated, arena, "onnxsim", 1, SHARED_BY_READERS)


def _program_of(source: Source) -> Program:
    if source.program is None:
        raise ModelFormatError("a CSV lists records only; give a model")
    return source.program


def _places(program: Program, plan_file: PlanFile) -> dict[str, tuple[int, int]]:
    """Return offset and bytes of each tensor that lies in the arena."""
    problem, plan = plan_file.problem, plan_file.plan
    return {
        name: (offset + program.root(name)[1], program.tensors[name].size)
        for record, offset in zip(problem.records, plan.offsets, strict=True)
        for name in record.tensors
    }


def _takes_bytes(tensor: Tensor) -> bool:
    return tensor.kind is not TensorKind.CONSTANT and tensor.size > 0


def _described(model: onnx.ModelProto, program: Program) -> dict[str, onnx.ValueInfoProto]:
    """Return the description of each value of the graph, its shape as it was planned."""
    graph = model.graph
    found = {each.name: each for each in (*graph.value_info, *graph.output, *graph.input)}
    made = [name for node in graph.node for name in node.output if name]
    for name in made:
        if name not in found and name in program.tensors:
            found[name] = graph.value_info.add(name=name)
    for name, value in found.items():
        tensor = program.tensors.get(name)
        if tensor is not None:
            shape = onnx.helper.make_tensor_type_proto(write_dtype(tensor.dtype), tensor.shape)
            value.type.CopyFrom(shape)
    return found


def _set(message: Any, key: str, value: str) -> None:
    """Set an entry of the metadata, in place of one that is there."""
    for entry in message.metadata_props:
        if entry.key == key:
            entry.value = value
            return
    message.metadata_props.add(key=key, value=value)


def _listed(names: list[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f", ... (+{rest} more)" if rest > 0 else "")


def _own(plan_file: PlanFile) -> dict[str, object]:
    """Return the facts without a key of onnxsim; working memory belongs to no value."""
    problem, plan = plan_file.problem, plan_file.plan
    return {
        "aliases": [kind.value for kind in plan_file.aliases],
        "alignment": plan_file.alignment,
        "boundary": plan_file.boundary.value,
        "strategy": plan.strategy,
        "scratch": {
            record.name: offset
            for record, offset in zip(problem.records, plan.offsets, strict=True)
            if not record.tensors
        },
    }


def _stated(model: onnx.ModelProto) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield offset and bytes of each value that has them."""
    graph = model.graph
    for value in (*graph.value_info, *graph.output, *graph.input):
        texts = {entry.key: entry.value for entry in value.metadata_props}
        if f"{_PREFIX}mem_offset" in texts:
            offset = _whole(texts, f"{_PREFIX}mem_offset", value.name)
            yield value.name, (offset, _whole(texts, f"{_PREFIX}mem_size", value.name))


def _whole(texts: Mapping[str, str], key: str, where: str = "the model") -> int:
    text = texts.get(key)
    if text is None:
        raise MissingFieldError(f"{where} has no {key!r}")
    if not (text.isascii() and text.isdigit()):
        raise WrongTypeError(f"{key} of {where} is {text!r}, expected a whole number")
    if len(text) > len(str(values.MAX_NUMBER)):
        raise OutOfRangeError(f"{key} of {where} is {text}, expected at most 2^63 - 1")
    return values.as_number(int(text), f"{key} of {where}")


def _document(text: str) -> values.Object:
    try:
        return values.as_object(json.loads(text), _OWN)
    except (ValueError, RecursionError) as error:
        raise WrongTypeError(f"metadata {_OWN} is not JSON") from error


def _read_own(
    path: Path, own: values.Object, stated: Mapping[str, tuple[int, int]], arena: int
) -> PlanFile:
    values.check_fields(own, _OWN, ("aliases", "alignment", "boundary", "strategy", "scratch"))
    kinds = values.texts(own, "aliases")
    if not set(kinds) <= set(AliasKind):
        raise WrongTypeError(f"aliases are {', '.join(kinds)}; known: {', '.join(AliasKind)}")
    scratch = values.member(own, "scratch")
    return _read_as(
        path,
        stated,
        arena,
        values.text(own, "strategy"),
        values.alignment(own, "alignment"),
        tuple(map(AliasKind, kinds)),
        Boundary(values.choice(own, "boundary", tuple(Boundary))),
        {name: values.as_number(offset, name) for name, offset in scratch.items()},
    )


def _read_as(
    path: Path,
    stated: Mapping[str, tuple[int, int]],
    arena: int,
    strategy: str,
    alignment: int,
    aliases: tuple[AliasKind, ...],
    boundary: Boundary = Boundary.INCLUDE,
    scratch: Mapping[str, int] | None = None,
) -> PlanFile:
    """Return the plan if the model's records, derived in this way, lie where it says."""
    source = read(path, alignment=alignment, aliases=aliases, boundary=boundary)
    program = _program_of(source)
    offsets = []
    for record in source.problem.records:
        found = {
            stated[name][0] - program.root(name)[1] for name in record.tensors if name in stated
        }
        if not record.tensors and record.name in (scratch or {}):
            found.add((scratch or {})[record.name])
        if not found:
            raise MissingFieldError(f"{record.name!r} has no offset, the plan is incomplete")
        if len(found) > 1:
            raise InvalidPlanError(
                f"{record.name!r} would lie at {', '.join(map(str, sorted(found)))} at once: the "
                f"plan lets fewer tensors share storage than {', '.join(aliases) or 'none'}",
                [record.name],
            )
        offsets.append(found.pop())
    for name, (_, size) in stated.items():
        needed = program.tensors[name].size if name in program.tensors else 0
        if size < needed:
            raise InconsistentError(f"{name!r} has {size} B in the plan, {needed} B in the model")
    plan = Plan.of(source.problem, tuple(offsets), strategy)
    verify(source.problem, plan)
    if plan.height > arena:
        raise InconsistentError(f"the arena is {arena} B, {plan.height} B are used")
    reference = ModelReference(path.name, model_digest(path))
    return PlanFile(reference, TARGET, boundary, alignment, aliases, source.problem, plan)
